import type { TSchema } from '@sinclair/typebox'
import { closestMatch } from 'leven'
import { DECIMAL_FRACTION_DIGITS, DECIMAL_INTEGER_DIGITS } from '../../schemas/fields.ts'
import { shown, textOf, type Value } from './json-scanner.ts'

const HYPHEN = 0x2d

/** Whether the bytes are a day that exists, as YYYY-MM-DD, in the years 0001 to 9999. */
function isDay(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 10) return false
  if (bytes[start + 4] !== HYPHEN || bytes[start + 7] !== HYPHEN) return false
  const year = number(bytes, start, 4)
  const month = number(bytes, start + 5, 2)
  const day = number(bytes, start + 8, 2)
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

/** The number that so many digits make; NaN where one is no digit. */
function number(bytes: Buffer, start: number, digits: number): number {
  let result = 0
  for (let at = start; at < start + digits; at += 1) {
    const digit = (bytes[at] ?? 0) - 0x30
    result = digit >= 0 && digit <= 9 ? result * 10 + digit : Number.NaN
  }
  return result
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?'
// PostgreSQL knows no offset of 16 hours or more, and no place on earth has one.
const OFFSET = '(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])'
const MOMENT = new RegExp(`^.{10}T${TIME}${OFFSET}$`, 'i')

/** Whether the text is a point in time with its offset (RFC 3339). */
function isMoment(text: string): boolean {
  return MOMENT.test(text) && isDay(Buffer.from(text), 0, 10)
}

/**
 * The exact decimal that a JSON number stands for, without an exponent: `1e5` is 100000, and `1.50`
 * keeps its zero. Undefined where it has more digits than a decimal may have (contract item 11).
 */
export function plainDecimal(number: string): string | undefined {
  if (decimalFault(number)) return undefined
  const { sign, digits, point } = dissect(number)
  // Of a zero only the decimals remain, whatever its exponent.
  const isZero = firstDigit(digits) === -1
  const whole = isZero ? '' : digits.slice(0, Math.max(point, 0)).padEnd(point, '0')
  const fraction = digits.slice(Math.max(point, 0)).padStart(digits.length - point, '0')
  return `${sign}${whole.replace(/^0+/, '') || '0'}${fraction === '' ? '' : `.${fraction}`}`
}

/** Which limit the number breaks, if any. */
function decimalFault(number: string): string | undefined {
  const { digits, point } = dissect(number)
  const first = firstDigit(digits)
  if (first !== -1 && point - first > DECIMAL_INTEGER_DIGITS) {
    return `has more than ${DECIMAL_INTEGER_DIGITS} digits before the decimal point`
  }
  if (digits.length - point > DECIMAL_FRACTION_DIGITS) {
    return `has more than ${DECIMAL_FRACTION_DIGITS} digits after the decimal point`
  }
  return undefined
}

/** All digits in a row, and before which of them the decimal point stands: it may be off either end. */
function dissect(number: string): { sign: string; digits: string; point: number } {
  const [mantissa = '', exponent = '0'] = number.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.')
  const sign = mantissa.startsWith('-') ? '-' : ''
  return { sign, digits: whole + fraction, point: whole.length + Number(exponent) }
}

function firstDigit(digits: string): number {
  return digits.search(/[1-9]/)
}

/** Why a string cannot be stored as a text of so many characters, if it cannot. */
function textFault(value: Value, maxLength: number): string | undefined {
  const { text, start, end } = value
  // Only escapes can bring these in: the source itself is UTF-8.
  if (text?.includes('\0')) return 'a NUL (\\u0000) cannot be stored in a text'
  if (text?.isWellFormed() === false) return 'the text holds one half of a surrogate pair'
  if (end - start <= maxLength || characters(value) <= maxLength) return undefined
  return `the text has more than ${maxLength} characters`
}

/** As PostgreSQL counts them: the bytes of UTF-8 that are not the continuation of another. */
function characters({ bytes, start, end }: Value): number {
  let count = 0
  for (let at = start; at < end; at += 1) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) count += 1
  }
  return count
}

const HEX = new Uint8Array(256)
for (const digit of Buffer.from('0123456789abcdefABCDEF')) HEX[digit] = 1

/** Whether the bytes are a UUID: 8, 4, 4, 4 and 12 hexadecimal digits, in any letter case. */
function isUuid(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 36) return false
  for (let index = 0; index < 36; index += 1) {
    const byte = bytes[start + index] ?? 0
    const isHyphen = index === 8 || index === 13 || index === 18 || index === 23
    if (isHyphen ? byte !== HYPHEN : HEX[byte] === 0) return false
  }
  return true
}

/** What a column takes; null is not its concern. */
export interface Rule {
  /** Whether the value may stand. It may give the value a `text`, to be stored in its place. */
  accepts(value: Value): boolean
  /** Why a value that was not accepted may not stand. */
  explain(value: Value): string
}

/** The rule of a scalar in a response schema. */
export function ruleOf(schema: TSchema): Rule {
  if (schema.enum) return closedList(schema.enum)
  if (schema.format === 'uuid') return uuid
  if (schema.format === 'date') return day
  if (schema.format === 'decimal') return decimal
  if (schema.format === 'date-time') return moment
  if ([schema.type].flat().includes('boolean')) return boolean
  if (schema.maxLength !== undefined) return text(schema.maxLength)
  throw new Error(`no import rule for ${JSON.stringify(schema)}`)
}

/** An object is read member by member, so that as a value of its own it never fits. */
export function groupOf(names: string[]): Rule {
  return {
    accepts: () => false,
    explain: (value) => `an object with ${names.join(' and ')} is expected, not ${shown(value)}`,
  }
}

const uuid: Rule = {
  accepts: ({ kind, bytes, start, end }) => kind === 'string' && isUuid(bytes, start, end),
  explain: (value) => `a UUID is expected, not ${shown(value)}`,
}

const day: Rule = {
  accepts: ({ kind, bytes, start, end }) => kind === 'string' && isDay(bytes, start, end),
  explain: (value) => `a day that exists is expected, as YYYY-MM-DD, not ${shown(value)}`,
}

const moment: Rule = {
  accepts: (value) => value.kind === 'string' && isMoment(textOf(value)),
  explain: (value) =>
    `a time with its offset is expected, as 2025-03-14T09:30:00Z, not ${shown(value)}`,
}

const decimal: Rule = {
  accepts: (value) => {
    if (value.kind !== 'number') return false
    // So few digits, and no exponent, break no limit: almost every number there is.
    if (value.text === undefined && value.end - value.start <= DECIMAL_FRACTION_DIGITS) return true
    value.text = plainDecimal(textOf(value))
    return value.text !== undefined
  },
  explain: (value) =>
    value.kind === 'number'
      ? `${shown(value)} ${decimalFault(textOf(value))}`
      : `a number is expected, not ${shown(value)}`,
}

const boolean: Rule = {
  accepts: ({ kind }) => kind === 'boolean',
  explain: (value) => `true or false is expected, not ${shown(value)}`,
}

function text(maxLength: number): Rule {
  return {
    accepts: (value) => value.kind === 'string' && textFault(value, maxLength) === undefined,
    explain: (value) =>
      value.kind === 'string'
        ? `${textFault(value, maxLength)}`
        : `a text is expected, not ${shown(value)}`,
  }
}

function closedList(values: string[]): Rule {
  const known = new Set(values)
  return {
    accepts: (value) => value.kind === 'string' && known.has(textOf(value)),
    explain: (value) =>
      value.kind === 'string'
        ? `${shown(value)} is not in the list; the closest is ${suggestion(textOf(value), values)}`
        : `a word of the list is expected, not ${shown(value)}`,
  }
}

/** The candidate that is most similar to a word, ignoring letter case. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const names = new Map(Array.from(candidates, (name) => [name.toLowerCase(), name]))
  const match = closestMatch(word.slice(0, 100).toLowerCase(), [...names.keys()])
  return names.get(match ?? '') ?? ''
}
