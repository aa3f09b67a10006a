import type { TSchema } from '@sinclair/typebox'
import { closestMatch } from 'leven'
import { DECIMAL_FRACTION_DIGITS, DECIMAL_INTEGER_DIGITS } from '../../schemas/fields.ts'
import { describe, textOf, type Value } from './json-scanner.ts'

export interface Rule {
  accepts(value: Value): boolean
  explain(value: Value): string
}

/** Rule of a scalar in a response schema. */
export function ruleOf(schema: TSchema): Rule {
  if (schema.enum) return closedList(schema.enum)
  if (schema.format === 'uuid') return uuid
  if (schema.format === 'date') return day
  if (schema.format === 'decimal') return decimal
  if (schema.format === 'date-time') return pastInstant
  if ([schema.type].flat().includes('boolean')) return boolean
  if (schema.maxLength !== undefined) return text(schema.maxLength)
  throw new Error(`no import rule for ${JSON.stringify(schema)}`)
}

export function groupOf(names: string[]): Rule {
  return {
    accepts: () => false,
    explain: expected(`an object with ${names.join(' and ')} is expected`),
  }
}

function expected(sentence: string): Rule['explain'] {
  return (value) => `${sentence}, not ${describe(value)}`
}

// Byte loops: regular expressions on strings would slow the import by a quarter.

const HYPHEN = 0x2d
const HEX = new Uint8Array(256)
for (const digit of Buffer.from('0123456789abcdefABCDEF')) HEX[digit] = 1

function isUuid(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 36) return false
  for (let index = 0; index < 36; index += 1) {
    const byte = bytes[start + index] ?? 0
    const isHyphen = index === 8 || index === 13 || index === 18 || index === 23
    if (isHyphen ? byte !== HYPHEN : HEX[byte] === 0) return false
  }
  return true
}

const uuid: Rule = {
  accepts: ({ type, bytes, start, end }) => type === 'string' && isUuid(bytes, start, end),
  explain: expected('a UUID is expected'),
}

/** True for an existing day as YYYY-MM-DD, in the years 0001 to 9999. */
export function isDay(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 10) return false
  if (bytes[start + 4] !== HYPHEN || bytes[start + 7] !== HYPHEN) return false
  const year = number(bytes, start, 4)
  const month = number(bytes, start + 5, 2)
  const day = number(bytes, start + 8, 2)
  if (!(year >= 1 && month >= 1 && month <= 12 && day >= 1)) return false
  // Date.UTC has no years below 100; the calendar repeats every 400 years.
  return day <= 28 || day <= new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate()
}

function number(bytes: Buffer, start: number, digits: number): number {
  let result = 0
  for (let at = start; at < start + digits; at += 1) {
    const digit = (bytes[at] ?? 0) - 0x30
    result = digit >= 0 && digit <= 9 ? result * 10 + digit : Number.NaN
  }
  return result
}

const day: Rule = {
  accepts: ({ type, bytes, start, end }) => type === 'string' && isDay(bytes, start, end),
  explain: expected('an existing day is expected, as YYYY-MM-DD'),
}

const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?'
// PostgreSQL rejects offsets of 16 hours and more.
const OFFSET = '(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])'
const INSTANT = new RegExp(`^.{10}T${TIME}${OFFSET}$`, 'i')

/** Maximum difference between the clocks of the source and of this machine, in ms. */
const CLOCK_TOLERANCE_MS = 60_000

/** Returns a time with its offset (RFC 3339), in ms since 1970. NaN for any other value. */
function instantOf(value: Value): number {
  const text = value.type === 'string' ? textOf(value) : ''
  const isInstant = INSTANT.test(text) && isDay(Buffer.from(text), 0, 10)
  return isInstant ? Date.parse(text.toUpperCase()) : Number.NaN
}

const pastInstant: Rule = {
  accepts: (value) => instantOf(value) <= Date.now() + CLOCK_TOLERANCE_MS,
  explain: (value) =>
    Number.isNaN(instantOf(value))
      ? `a time with its offset is expected, as 2025-03-14T09:30:00Z, not ${describe(value)}`
      : `${describe(value)} is in the future: write null until it has passed`,
}

const boolean: Rule = {
  accepts: ({ type }) => type === 'boolean',
  explain: expected('true or false is expected'),
}

/** Exports with `IEEE754Compatible=true` write decimals as strings, without an exponent. */
const DECIMAL_STRING = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/

function isNumber(value: Value): boolean {
  return value.type === 'number' || (value.type === 'string' && DECIMAL_STRING.test(textOf(value)))
}

const decimal: Rule = {
  // A short number without an exponent is within the limits.
  accepts: (value) =>
    isNumber(value) &&
    ((value.text === undefined && value.end - value.start <= DECIMAL_FRACTION_DIGITS) ||
      decimalProblem(textOf(value)) === undefined),
  explain: (value) => {
    if (isNumber(value)) return `${describe(value)} ${decimalProblem(textOf(value))}`
    return value.type === 'string' && /^[-+]?[\d.]+e[-+]?\d+$/i.test(textOf(value))
      ? `a number without an exponent is expected, not ${describe(value)}: a spreadsheet may have dropped digits`
      : `a number such as 1234.50 is expected, not ${describe(value)}`
  },
}

/** Returns the problem of a number with too many digits (contract 11). PostgreSQL reads exponents exactly. */
function decimalProblem(number: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?([0-9]+)[.]?([0-9]*)e?(.*)$/i.exec(number) ?? []
  const digits = whole + fraction
  // Index of the decimal point, possibly outside of the digits.
  const point = whole.length + Number(exponent)
  const first = Math.max(digits.search(/[1-9]/), 0)
  if (point - first > DECIMAL_INTEGER_DIGITS)
    return `has more than ${DECIMAL_INTEGER_DIGITS} digits before the decimal point`
  if (digits.length - point > DECIMAL_FRACTION_DIGITS)
    return `has more than ${DECIMAL_FRACTION_DIGITS} digits after the decimal point`
  return undefined
}

function text(maxLength: number): Rule {
  return {
    accepts: (value) => value.type === 'string' && textProblem(value, maxLength) === undefined,
    explain: (value) =>
      value.type === 'string'
        ? `${textProblem(value, maxLength)}`
        : `a text is expected, not ${describe(value)}`,
  }
}

function textProblem(value: Value, maxLength: number): string | undefined {
  const { text, start, end } = value
  // Only escapes can produce these two: the line itself is valid UTF-8.
  if (text?.includes('\0')) return 'a text cannot contain NUL (\\u0000)'
  if (text?.isWellFormed() === false) return 'the text contains half of a surrogate pair'
  if (end - start <= maxLength || characterCount(value) <= maxLength) return undefined
  return `the text has more than ${maxLength} characters`
}

/** Counts code points, as PostgreSQL does: all bytes of UTF-8 except continuation bytes. */
function characterCount({ bytes, start, end }: Value): number {
  let count = 0
  for (let at = start; at < end; at += 1) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) count += 1
  }
  return count
}

function closedList(values: string[]): Rule {
  const known = new Set(values)
  return {
    accepts: (value) => value.type === 'string' && known.has(textOf(value)),
    explain: (value) =>
      value.type === 'string'
        ? `${describe(value)} is not in the list${suggestion(textOf(value), values)}`
        : `a value of the list is expected, not ${describe(value)}`,
  }
}

/** Ends a sentence about an unknown word: names a candidate that differs in few letters, if there is one. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const names = new Map(Array.from(candidates, (name) => [name.toLowerCase(), name]))
  const maxDistance = Math.min(3, Math.max(1, Math.round(0.4 * word.length)))
  const match = closestMatch(word.slice(0, 100).toLowerCase(), [...names.keys()], { maxDistance })
  return match === undefined ? '' : `; the closest is ${names.get(match)}`
}
