import { anyText } from '../../support/awkward-rows.ts'
import { fc } from '../../support/random.ts'
import type { Parameter } from './document.ts'

/** Text on the wire, one character a byte; `valid` according to the document. */
export interface Value {
  bytes: string
  valid: boolean
}

const encoded = (text: string) => encodeURIComponent(text.toWellFormed())

/** Generates values that the schema of a query parameter allows. */
export function validValue({ name, schema }: Parameter): fc.Arbitrary<Value> {
  // A random version would be valid and get 412.
  if (name === 'version') return fc.constant({ bytes: '0', valid: false })
  if (name === 'since') return fc.constant({ bytes: 'start', valid: true })
  const text =
    schema.format === 'date'
      ? fc
          .date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
          .map((day) => day.toISOString().slice(0, 10))
      : fc.integer({ min: 1, max: 40 }).map(String)
  return text.map((bytes) => ({ bytes, valid: true }))
}

const HOSTILE = [
  ...['', '0', '-1', '+1', '1e3', '1.0', '0x10', '01', ' 1', '1 ', 'NaN', 'null', 'undefined'],
  ...['10000', '10001', '2147483647', '2147483648', '9007199254740993', '9'.repeat(400)],
  ...['2025-02-30', '2025-1-1', '0000-01-01', '10000-01-01', '2024-02-29', '2025-01-01T00:00:00Z'],
  ...['infinity', '-infinity', 'today', 'epoch', 'BC', "' or ''='", '; drop table app', '$1', '%'],
  ...['__proto__', 'constructor', '[]', '{}', '../..', '\0', '\r\n', '\u2028', 'é', '😀', '\ufeff'],
]

/** Generates invalid and unusual values, percent-encoded or not. */
export const hostileValue: fc.Arbitrary<Value> = fc
  .oneof(
    fc.constantFrom(...HOSTILE).map(encoded),
    anyText(40).map(encoded),
    fc.string({ unit: 'binary-ascii', maxLength: 40 }).map((text) => text.replace(/[^!-~]/g, '%')),
    fc.constantFrom('%', '%zz', '%4', '%ff', '%c0%af', '%ed%a0%80', '%00', '%252e', '\xc3\xa9'),
    fc.integer({ min: 1, max: 12 }).map((power) => 'a'.repeat(2 ** power)),
  )
  .map((bytes) => ({ bytes, valid: false }))

/** Generates header values without line breaks. */
export const headerValue: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('*', 'W/"0.0-x"', '"', '"",'.repeat(200), 'gzip', 'br;q=0, zstd', 'identity;q=0'),
  fc.constantFrom('', ' ', '\t', '-5', 'chunked', 'close', 'keep-alive', '100-continue', 'x, y'),
  fc.string({ unit: 'binary-ascii', maxLength: 60 }).map((text) => text.replace(/[\r\n]/g, '')),
  fc.stringMatching(/^[\x80-\xff]{0,30}$/),
  fc.integer({ min: 1, max: 13 }).map((power) => 'v'.repeat(2 ** power)),
)
