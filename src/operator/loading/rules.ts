import type { TSchema } from '@sinclair/typebox'
import { closestMatch } from 'leven'
import { DECIMAL_FRACTION_DIGITS, DECIMAL_INTEGER_DIGITS } from '../../schemas/fields.ts'
import { isDay, isHour, isUuid } from '../../schemas/formats.ts'
import { escaped } from '../output.ts'

/** Begins a decimal that was a JSON number. A text of the input that begins with this character gets a second one. */
export const NUMBER = '\0'

/** Returns the problem of a value; undefined: it is right. */
export type Rule = (value: unknown) => string | undefined

export function groupOf(names: string[]): Rule {
  return (value) => `an object with ${names.join(' and ')} is expected, not ${describe(value)}`
}

/** Shows a value of the input in a sentence. */
export function describe(value: unknown): string {
  if (typeof value === 'string') {
    const text = value.startsWith(NUMBER) ? value.slice(NUMBER.length) : value
    const isNumber = text !== value && !text.startsWith(NUMBER)
    return visible(isNumber ? shorten(text) : JSON.stringify(shorten(text)))
  }
  if (typeof value !== 'object' || value === null) return String(value)
  return Array.isArray(value) ? 'an array' : 'an object'
}

const shorten = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

/** Escapes all characters that a reader cannot see, except the space. */
export function visible(text: string): string {
  return escaped(text, /(?! )[\p{C}\p{Z}]/gu)
}

/** @param expected begins the problem of a value that is not right */
const expecting =
  (expected: string, isRight: (value: unknown) => boolean): Rule =>
  (value) =>
    isRight(value) ? undefined : `${expected}, not ${describe(value)}`

const uuid = expecting('a UUID is expected', isUuid)

const day = expecting('an existing day is expected, as YYYY-MM-DD', isDay)

/** Not part of a format: a row that is stored with another hour may come again. */
export const hour = expecting(
  'a time as HH:mm or HH:mm:ss is expected, such as 09:05 or 14:58:40',
  isHour,
)

// PostgreSQL reads at most 128 characters.
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,99})?'
// PostgreSQL rejects offsets of 16 hours and more.
const OFFSET = '(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])'
const INSTANT = new RegExp(`^.{10}T${TIME}${OFFSET}$`, 'i')
const FIRST_INSTANT = Date.parse('0001-01-01T00:00:00Z')

/** Maximum difference between the clocks of the source and of this machine, in ms. */
const CLOCK_TOLERANCE_MS = 60_000

const pastInstant: Rule = (value) => {
  const isInstant = typeof value === 'string' && INSTANT.test(value) && isDay(value.slice(0, 10))
  const time = isInstant ? Date.parse(value.toUpperCase()) : Number.NaN
  if (!(time >= FIRST_INSTANT))
    return `a time with its offset is expected, as 2025-03-14T09:30:00Z, not ${describe(value)}`
  if (time <= Date.now() + CLOCK_TOLERANCE_MS) return undefined
  return `${describe(value)} is in the future: write null until it has passed`
}

const boolean = expecting('true or false is expected', (value) => typeof value === 'boolean')

/** Exports with `IEEE754Compatible=true` write decimals as strings, without an exponent. */
const DECIMAL = new RegExp(`^${NUMBER}?-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$`)
const EXPONENT = new RegExp(`^${NUMBER}-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?e[-+]?[0-9]+$`, 'i')

const decimal: Rule = (value) => {
  if (typeof value === 'string') {
    const isPlain = DECIMAL.test(value)
    if (isPlain && value.length <= DECIMAL_FRACTION_DIGITS) return undefined
    if (isPlain || EXPONENT.test(value)) return digitsProblem(value.replace(NUMBER, ''))
  }
  return `a number such as 1234.50 is expected, not ${describe(value)}`
}

/** Returns the problem of a number with too many digits. PostgreSQL reads exponents exactly. */
function digitsProblem(number: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?([0-9]+)(?:[.]([0-9]+))?(?:e(.*))?$/i.exec(number) ?? []
  const digits = whole + fraction
  // Index of the decimal point, possibly outside of the digits.
  const point = whole.length + Number(exponent)
  const first = Math.max(digits.search(/[1-9]/), 0)
  if (point - first > DECIMAL_INTEGER_DIGITS)
    return `${shorten(number)} has more than ${DECIMAL_INTEGER_DIGITS} digits before the decimal point`
  if (digits.length - point > DECIMAL_FRACTION_DIGITS)
    return `${shorten(number)} has more than ${DECIMAL_FRACTION_DIGITS} digits after the decimal point`
  return undefined
}

function text(maxLength: number): Rule {
  return (value) => {
    if (typeof value !== 'string') return `a text is expected, not ${describe(value)}`
    // Only escapes can produce these two: the line itself is valid UTF-8.
    if (value.includes('\0')) return 'a text cannot contain NUL (\\u0000)'
    if (!value.isWellFormed()) return 'the text contains half of a surrogate pair'
    // PostgreSQL counts code points.
    if (value.length <= maxLength || [...value].length <= maxLength) return undefined
    return `the text has more than ${maxLength} characters`
  }
}

function closedList(values: string[]): Rule {
  const known = new Set<unknown>(values)
  return (value) => {
    if (known.has(value)) return undefined
    return typeof value === 'string'
      ? `${describe(value)} is not a value of this field${suggestion(value, values)}`
      : `a text is expected, not ${describe(value)}`
  }
}

const FORMATS: Record<string, { sqlType: string; rule: Rule }> = {
  uuid: { sqlType: 'uuid', rule: uuid },
  date: { sqlType: 'date', rule: day },
  decimal: { sqlType: 'numeric', rule: decimal },
  boolean: { sqlType: 'boolean', rule: boolean },
  'date-time': { sqlType: 'timestamptz', rule: pastInstant },
}

/** Returns the type of the column and the rule of a scalar in a response schema. */
export function formatOf({ enum: values, format, type, maxLength }: TSchema) {
  const rule = values ? closedList(values) : text(maxLength)
  return FORMATS[format ?? [type].flat()[0]] ?? { sqlType: 'text', rule }
}

/** Ends a sentence about an unknown word: names a candidate that differs in few letters, if there is one. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const names = new Map(Array.from(candidates, (name) => [name.toLowerCase(), name]))
  // Two exchanged letters are two changes.
  const maxDistance = Math.min(3, Math.max(word.length > 2 ? 2 : 1, Math.round(0.4 * word.length)))
  const match = closestMatch(word.slice(0, 100).toLowerCase(), [...names.keys()], { maxDistance })
  return match === undefined ? '' : `; the closest is ${names.get(match)}`
}
