import type { Problems } from './problems.ts'
import { rowTypes } from './row-types.ts'
import { NUMBER, visible } from './rules.ts'
import type { Line } from './source.ts'

const columns = Object.values(rowTypes).flatMap((type) => type.columns)
const decimals = columns.filter(({ sqlType }) => sqlType === 'numeric')
/** The id of a connection is no number, but the message has its digits. */
const NUMBERS = new Set(['connection', ...decimals.map(({ member }) => member)])

/** A decimal and its name. The end must be a comma or a bracket, so that 01 or 1.2.3 stays invalid JSON. */
const DECIMAL = new RegExp(
  `("(?:${[...NUMBERS].join('|')})"\\s*:\\s*)` +
    '(-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?)(?=\\s*[,}])',
  'g',
)

/** Escapes with which a name would hide from DECIMAL, and a text would begin with NUMBER. */
const ESCAPED_LETTER_OR_NUL = /\\u00(?:00|[4-7])/

/** Advice for a file of JSON that has not an object on each line. Its first line shows this. */
export function adviceOnForm({ line, text }: Line): string | undefined {
  if (line !== 1) return undefined
  const start = text.trim()
  if (start.startsWith('['))
    return "an object on each line is expected: `jq -c '.[]' FILE` writes them from an array"
  return start === '{'
    ? 'an object on one line is expected: `jq -c . FILE` writes it so'
    : undefined
}

/** Parses a line of JSON. A decimal becomes a text with all its digits, after NUMBER. */
export function parseJson(
  { text, problem }: Pick<Line, 'text' | 'problem'>,
  problems: Problems,
): unknown {
  if (problem !== undefined) return problems.add(problem)
  let value: unknown
  try {
    value = parseExactly(text)
  } catch (error) {
    // A wrong file may have millions of lines.
    return problems.add(problems.isFull ? '' : syntaxProblem(text, error as Error))
  }
  const repeated = mayRepeatName(text, value) ? repeatedName(text) : undefined
  return repeated === undefined ? value : problems.add('the field appears twice', repeated)
}

/** A reviver alone would do, but it takes 2 µs longer for a row of 400 bytes. */
function parseExactly(text: string): unknown {
  if (text.includes('\\u00') && ESCAPED_LETTER_OR_NUL.test(text))
    return JSON.parse(text, exactValue)
  return JSON.parse(text.replace(DECIMAL, '$1"\\u0000$2"'))
}

function exactValue(name: string, value: unknown, { source = '' }: { source?: string }): unknown {
  if (typeof value === 'number' && NUMBERS.has(name)) return NUMBER + source
  // A second NUMBER, so that the rest of the text is not the digits of a number.
  if (typeof value === 'string' && value.startsWith(NUMBER)) return NUMBER + value
  return value
}

function syntaxProblem(text: string, error: Error): string {
  // The reviver calls itself for each level.
  if (error instanceof RangeError) return 'its objects and arrays are nested too deeply'
  let { message } = error
  try {
    JSON.parse(text)
  } catch (syntaxError) {
    // The message of the line itself, without NUMBER.
    message = (syntaxError as Error).message
  }
  return `not valid JSON: ${visible(message.replace(/ \(line \d+ column \d+\)$/, ''))}`
}

/**
 * True if the text may have a name twice in an object. JSON.parse() keeps the last one, so that the value has fewer
 * names than the text. A text that begins with a colon also looks like a name.
 */
function mayRepeatName(text: string, value: unknown): boolean {
  return countNames(text) > countMembers(value)
}

const QUOTE = '"'.charCodeAt(0)
const SPACE = ' '.charCodeAt(0)

/** Counts the colons after a quote, with or without space between them. An expression would make an array for each row. */
function countNames(text: string): number {
  let count = 0
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', colon + 1)) {
    let before = colon - 1
    // JSON has no other character below a space outside of strings.
    while (text.charCodeAt(before) <= SPACE) before -= 1
    if (text.charCodeAt(before) === QUOTE) count += 1
  }
  return count
}

function countMembers(value: unknown): number {
  let count = 0
  const parts: unknown[] = [value]
  for (const part of parts) {
    if (Array.isArray(part)) {
      for (const item of part) if (hasMembers(item)) parts.push(item)
      continue
    }
    // Object.values() would make an array for each row.
    for (const name in part as Record<string, unknown>) {
      count += 1
      const member = (part as Record<string, unknown>)[name]
      if (hasMembers(member)) parts.push(member)
    }
  }
  return count
}

const hasMembers = (value: unknown): value is object => typeof value === 'object' && value !== null

export const isObject = (value: unknown): value is Record<string, unknown> =>
  hasMembers(value) && !Array.isArray(value)

/** Finds a name that an object has twice, in valid JSON. @returns its path */
function repeatedName(text: string): string | undefined {
  /** The objects and arrays around a token: names so far, and the last name, or the number of the item from 1. */
  const open: { names?: Set<string>; last: string | number }[] = []
  const token = /["[\]{},]/g
  const colon = /\s*:/y
  for (let found = token.exec(text); found; found = token.exec(text)) {
    const [character] = found
    const inner = open.at(-1)
    if (character === '{') open.push({ names: new Set(), last: '' })
    else if (character === '[') open.push({ last: 1 })
    else if (character === '}' || character === ']') open.pop()
    else if (character === ',') {
      if (typeof inner?.last === 'number') inner.last += 1
    } else {
      token.lastIndex = endOfString(text, found.index)
      colon.lastIndex = token.lastIndex
      if (!inner?.names || !colon.test(text)) continue
      inner.last = JSON.parse(text.slice(found.index, token.lastIndex))
      if (inner.names.has(String(inner.last)))
        return visible(open.map(({ last }) => String(last).slice(0, 60)).join('.'))
      inner.names.add(String(inner.last))
    }
  }
  return undefined
}

/** @returns the index after the string that begins at `start` */
function endOfString(text: string, start: number): number {
  for (let end = start + 1; ; end += 1) {
    end = text.indexOf('"', end)
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes += 1
    if (backslashes % 2 === 0) return end + 1
  }
}
