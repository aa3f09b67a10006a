import { type Static, Type } from '@sinclair/typebox'

/** Most digits before the point, and most digits after it. */
export const DECIMAL_INTEGER_DIGITS = 38
export const DECIMAL_FRACTION_DIGITS = 38

/** What a reader of the contract must know about every number that is a decimal. */
export const DECIMAL_RULE =
  'Decimals are exact: the digits are those that the institution gave, trailing zeros included, ' +
  `up to ${DECIMAL_INTEGER_DIGITS} before the point and ${DECIMAL_FRACTION_DIGITS} after it, never ` +
  'with an exponent. A binary float holds about 16 of them, so read these fields with a parser ' +
  'that keeps decimals.'

/**
 * An exact decimal (contract item 11). On the wire it is a JSON number; in this program it is the
 * text of its digits and never a JavaScript number, which would round it. That is why the schema
 * says `number`, for the reader of the answer, and its type is `string`, for the writer of it.
 */
export const Decimal = Type.Unsafe<string>({
  type: 'number',
  format: 'decimal',
  title: 'Decimal',
  description: DECIMAL_RULE,
  examples: [1250.75],
})
export type Decimal = Static<typeof Decimal>
