import type { Mutant } from './mutators.ts'

/** Mutants of a line: a pattern, and its replacement. */
type Faults = [RegExp, string | ((found: string) => string)][]

const number: Faults = [
  // No test can distinguish 1,001 ms from 1,000 ms.
  [/(?<![\w.#"'-])\d+(?![\w.])/g, (found) => String(Number(found) < 1_000 ? Number(found) + 1 : 0)],
]

const python: Faults = [
  ...number,
  [/==/g, '!='],
  [/!=/g, '=='],
  [/(?<= )<(?= )/g, '<='],
  [/(?<= )>(?= )/g, '>='],
  [/<=/g, '<'],
  [/>=/g, '>'],
  [/\band\b/g, 'or'],
  [/\bor\b/g, 'and'],
  [/\bnot (?!in)/g, ''],
  [/(?<= )\+(?= )/g, '-'],
  [/(?<= )-(?= )/g, '+'],
  [/\bTrue\b/g, 'False'],
  [/\bFalse\b/g, 'True'],
  [/(?<=\breturn ).+$/g, 'None'],
  [/\braise .+$/g, 'pass'],
  [/(?<=[([{ =])"[^" ]+"/g, '""'],
]

const sql: Faults = [...number, [/\band\b/g, 'or'], [/ = /g, ' <> '], [/^\s*[a-z].*;$/g, '']]

const shell: Faults = [
  ...number,
  [/&&/g, '||'],
  [/(?<= )--?[a-z][\w-]*/g, ''],
  [/^\s*(?!fi$|done$|\}|then$|else$)\S.*[^\\{(]$/g, ':'],
]

const yaml: Faults = [
  ...number,
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/^\s*[\w$]+: .+$/g, ''],
  [/^\s*- .+$/g, ''],
]

const settings: Faults = [...number, [/^\s*\S.*$/g, '']]

const BY_ENDING: [RegExp, Faults][] = [
  [/\.py$/, python],
  [/\.sql$/, sql],
  [/\.ya?ml$/, yaml],
  [/\.(cfg|env|service)$/, settings],
  [/^/, shell],
]

/** Lists the mutants of a file that is no TypeScript, line by line. Comments and Python's docstrings have none. */
export function linesMutants(code: string, file: string): Mutant[] {
  const [, faults = []] = BY_ENDING.find(([ending]) => ending.test(file)) ?? []
  const mutants: Mutant[] = []
  const comments = /"""[\s\S]*?"""|(?:^|(?<=\s))(?:#|--).*$/gm
  const hidden = code.replaceAll(comments, (found) => found.replaceAll(/[^\n]/g, ' '))
  let offset = 0
  for (const line of hidden.split('\n')) {
    const isImport = /^\s*(from|import) /.test(line)
    for (const [pattern, replacement] of isImport ? [] : faults)
      for (const { 0: found, index } of line.trimEnd().matchAll(pattern)) {
        const text = typeof replacement === 'string' ? replacement : replacement(found)
        const start = offset + index
        mutants.push({ start, end: start + found.length, text })
      }
    offset += line.length + 1
  }
  return mutants.filter(({ start, end, text }) => code.slice(start, end) !== text)
}
