import { globSync, readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { fc } from '../support/random.ts'

/** Files whose expressions read texts of callers and of inputs. */
const files = globSync([
  'src/http/*.ts',
  'src/routes/*.ts',
  'src/operator/{loading,commands}/*.ts',
  'src/operator/{output,table}.ts',
])

const MADE_AT_START = /^const \w+ = new RegExp\(/gm
const modules = files.filter((file) => readFileSync(file, 'utf8').search(MADE_AT_START) >= 0)

/** Expressions that are made when their module is loaded. */
const made: RegExp[] = []
const original = globalThis.RegExp
globalThis.RegExp = class extends original {
  constructor(...args: ConstructorParameters<typeof original>) {
    super(...args)
    // Not those of a library, nor those of a module that is loaded because a copy imports it.
    const { stack = '' } = new Error()
    if (modules.some((file) => stack.includes(`${file}?copy`))) made.push(new original(this))
  }
} as typeof original
// A new copy of each: an earlier file of this process may have loaded it.
for (const file of modules) await import(`${pathToFileURL(file)}?copy`)
globalThis.RegExp = original

/** Returns the expressions that are written in a file as /…/. */
function literals(file: string): RegExp[] {
  const found: RegExp[] = []
  const visit = (node: ts.Node) => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      found.push(new RegExp(node.text.slice(1, end), node.text.slice(end + 1)))
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true))
  return found
}

/** Texts with a part that can be repeated: each part of matching texts, and each pair of the characters in the expression. */
function* shapesOf({
  source,
  flags,
}: RegExp): Generator<[start: string, part: string, end: string]> {
  // fast-check makes no texts for these.
  const plain = source.replaceAll(/\(\?<?[=!][^()]*\)|\\b/g, '').replaceAll(/\\p\{\w+\}/gi, '\\x00')
  const simple = new RegExp(plain, flags.replaceAll(/[^u]/g, ''))
  const matching = plain === '' ? fc.string() : fc.stringMatching(simple, { maxLength: 60 })
  for (const text of fc.sample(matching, { numRuns: 3, seed: 1 }))
    for (let at = 0; at < text.length; at += 1)
      for (const length of [1, 2, 3]) {
        const part = text.slice(at, at + length)
        for (const end of [text.slice(at + length), '\x01']) yield [text.slice(0, at), part, end]
      }
  const characters = new Set(`${source.replaceAll(/\\[a-z]/gi, ' \t0a')}a0" `)
  for (const one of characters)
    for (const other of characters) {
      yield ['', one + other, '\x01']
      yield [one, other, '\x01']
    }
}

/** Processor time in ms. */
function timeOf(expression: RegExp, text: string): number {
  const start = process.cpuUsage()
  if (expression.flags.includes('g')) text.replace(expression, '')
  else expression.test(text)
  expression.lastIndex = 0
  return process.cpuUsage(start).user / 1_000
}

const LONGEST = 2 ** 16
/** A linear expression needs less for the longest text. */
const NOTABLE_MS = 5

/** Returns a text whose time grows faster than its length: eight times for four times the length. */
function worstText(expression: RegExp): string | undefined {
  for (const [start, part, end] of shapesOf(expression)) {
    const textOf = (length: number) => start + part.repeat(length / part.length) + end
    for (let length = 64; length <= LONGEST; length *= 4) {
      if (timeOf(expression, textOf(length)) < NOTABLE_MS) continue
      // Other processes and the collector of garbage only add to a time.
      const least = (of: number) =>
        Math.min(...Array.from({ length: 5 }, () => timeOf(expression, textOf(of))))
      const ms = least(length)
      // One of a few milliseconds may be a tick of the clock that counts processor time.
      if (ms >= NOTABLE_MS && ms > 8 * least(length / 4)) return `${start}${part}…${end}`
    }
  }
  return undefined
}

t.test('Expressions that are made at the start: all are checked', async (t) => {
  const calls = modules.flatMap((file) => readFileSync(file, 'utf8').match(MADE_AT_START) ?? [])
  t.equal(made.length, calls.length)
  t.ok(made.length > 0)
})

t.test('Expression whose time grows with the square of the text: found', async (t) => {
  for (const expression of [/"(?:[^"\\]|\\.)*"(\s*:)?/g, /a+$/, /^([0-9]+)[.]?([0-9]*)$/])
    t.ok(worstText(expression), String(expression))
})

for (const file of files)
  for (const expression of [...literals(file), ...(file === modules[0] ? made : [])])
    t.test(`${file}: time of ${expression} grows with the length`, async (t) =>
      t.equal(worstText(expression), undefined),
    )
