import { Kind, type Static, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'

/**
 * Named parts of the contract. A component carries its name as `$id`; whoever serves the contract
 * registers the components once, and everything else points at them by that name. So the published
 * document has one `PortfolioTransaction`, not a copy in every answer, and a generated client has
 * one type for it.
 */

/** A schema that others may refer to by name. */
export type Named<T extends TSchema> = T & { $id: string }

/** The schema under a name, which becomes its key in the document's `components.schemas`. */
export function Component<T extends TSchema>(name: string, schema: T): Named<T> {
  return { ...schema, $id: name }
}

/** A pointer to a component; it has the component's type. */
export function Reference<T extends TSchema>(component: Named<T>): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>(Type.Ref(component.$id))
}

/** What a schema tells its reader, beside what it demands of the value. */
export interface Annotations {
  title: string
  description: string
  examples?: readonly unknown[]
}

/** The same demands on the value, with the words of the field that uses them. */
export function Described<T extends TSchema>(schema: T, annotations: Annotations): T {
  return { ...schema, ...annotations }
}

/**
 * The schema, or null where the fact is not known (contract item 10: a field is never left out).
 * It is written as a list of types, `["string", "null"]`, which is how JSON Schema 2020-12 and so
 * OpenAPI 3.1 say it, and which client generators turn into `string | null`. The schema needs a
 * `type` of its own: a reference or a union does not have one.
 */
export function Nullable<T extends TSchema>(
  schema: T,
  annotations: Annotations,
): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({
    ...schema,
    ...annotations,
    type: [schema.type, 'null'],
    // TypeBox would otherwise go on taking it for the schema that it was, which refuses null.
    [Kind]: 'Unsafe',
  })
}

/** An identifier. The service writes it in lower case. */
export const Uuid = Type.String({
  format: 'uuid',
  pattern: '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  title: 'Identifier',
  description: 'A UUID, written in lower case.',
  examples: ['5f0c1d7e-93b4-4f0e-8a56-2f4a7c9e1b30'],
})
export type Uuid = Static<typeof Uuid>

/** Names, codes, times of day: text passed through, as long as the tables let it be. */
export const ShortText = Type.String({ maxLength: 255 })

/** Running text passed through. Bounded, so that the size of a page is. */
const LongText = Type.String({ maxLength: 10_000 })

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

/**
 * The code of a currency. Open, because institutions also write codes that ISO 4217 does not have:
 * GBX for pence, or the ticker of a coin.
 */
export const Currency = Described(ShortText, {
  title: 'Currency',
  description:
    'Code of a currency: ISO 4217 as a rule, or what the institution writes (GBX for pence).',
  examples: ['EUR'],
})
export type Currency = Static<typeof Currency>

// Spelled out without a look-ahead, which half of the regular expression engines lack.
const YEAR = '(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)'
const MONTH = '(?:0[1-9]|1[0-2])'
const DAY = '(?:0[1-9]|[12][0-9]|3[01])'

/**
 * A day of the calendar, years 0001 to 9999 (contract item 3). The pattern holds the form and the
 * range of the year; the format `date` holds that the day exists. No time zone is attached to it.
 */
export const CalendarDate = Type.String({
  format: 'date',
  pattern: `^${YEAR}-${MONTH}-${DAY}$`,
  title: 'Date',
  description: 'A day that exists, as YYYY-MM-DD, in the years 0001 to 9999; it has no time zone.',
  examples: ['2025-03-14'],
})
export type CalendarDate = Static<typeof CalendarDate>

/** The day that lists filter and sort by (contract items 4 and 8), in words for descriptions. */
export const EFFECTIVE_DATE =
  'the effective date (`operationDateDay`, or `valueDateDay` where there is no operation date)'

const hourRule = 'By convention HH:mm:ss; whatever else the institution writes is passed through.'
const zoneRule =
  'By convention an IANA name; whatever else the institution writes is passed through.'

/**
 * When it happened and when it counted: the ten fields that portfolio and account transactions
 * share, in the order of sections 2.2 and 2.3. At least one of the two days is known.
 */
export const TransactionDates = {
  operationDateDay: Nullable(CalendarDate, {
    title: 'Operation date',
    description:
      'Day on which the transaction was made. Null only where `valueDateDay` is known. It is the ' +
      'day that lists are filtered and sorted by.',
    examples: ['2025-03-14'],
  }),
  originalOperationDateDay: Nullable(CalendarDate, {
    title: 'Operation date, as the institution states it',
    description: 'Operation date in the institution’s own time zone, `originalOperationDateTz`.',
    examples: ['2025-03-14'],
  }),
  valueDateDay: Nullable(CalendarDate, {
    title: 'Value date',
    description:
      'Day from which the transaction counts in the position or the balance. Lists are filtered ' +
      'and sorted by it where there is no operation date.',
    examples: ['2025-03-18'],
  }),
  originalValueDateDay: Nullable(CalendarDate, {
    title: 'Value date, as the institution states it',
    description: 'Value date in the institution’s own time zone, `originalValueDateTz`.',
    examples: ['2025-03-18'],
  }),
  operationDateHour: Nullable(ShortText, {
    title: 'Operation time',
    description: `Time of day on \`operationDateDay\`. ${hourRule}`,
    examples: ['15:42:07'],
  }),
  originalOperationDateHour: Nullable(ShortText, {
    title: 'Operation time, as the institution states it',
    description: `Time of day on \`originalOperationDateDay\`. ${hourRule}`,
    examples: ['16:42:07'],
  }),
  valueDateHour: Nullable(ShortText, {
    title: 'Value time',
    description: `Time of day on \`valueDateDay\`. ${hourRule}`,
    examples: ['00:00:00'],
  }),
  originalValueDateHour: Nullable(ShortText, {
    title: 'Value time, as the institution states it',
    description: `Time of day on \`originalValueDateDay\`. ${hourRule}`,
    examples: ['00:00:00'],
  }),
  originalOperationDateTz: Nullable(ShortText, {
    title: 'Time zone of the original operation date',
    description: `Time zone of the two original operation fields. ${zoneRule}`,
    examples: ['Europe/Madrid'],
  }),
  originalValueDateTz: Nullable(ShortText, {
    title: 'Time zone of the original value date',
    description: `Time zone of the two original value fields. ${zoneRule}`,
    examples: ['Europe/Madrid'],
  }),
}

/** What both kinds of transaction say about cost, currency and subject (sections 2.2 and 2.3). */
export const TransactionTerms = {
  exchangeRate: Nullable(Decimal, {
    title: 'Exchange rate',
    description:
      'Rate between two currencies that the institution applied, as it states it. The contract ' +
      'does not say which of them is the divisor: compare the amounts before you convert.',
    examples: [1.0842],
  }),
  commission: Nullable(Decimal, {
    title: 'Commission',
    description:
      'What the institution charged for the transaction, in `currency`. The sign is the ' +
      'institution’s: some write a charge as a negative number.',
    examples: [4.95],
  }),
  taxes: Nullable(Decimal, {
    title: 'Taxes',
    description:
      'Taxes on the transaction, in `currency`. The sign is the institution’s: some write a ' +
      'charge as a negative number.',
    examples: [12.31],
  }),
  currency: Nullable(Currency, {
    title: 'Currency',
    description:
      'Currency of the amounts: an ISO 4217 code as a rule, otherwise what the institution writes ' +
      '(GBX for pence). Null where it names none.',
    examples: ['EUR'],
  }),
  localCurrency: Nullable(Currency, {
    title: 'Local currency',
    description:
      'Second currency of the transaction, such as the one in which the asset is quoted, where ' +
      'the institution names one.',
    examples: ['USD'],
  }),
  description: Nullable(LongText, {
    title: 'Description',
    description: 'Text that the institution gives the transaction, in its own language.',
    examples: ['Dividendo 0,25 €/acción'],
  }),
  investment: Nullable(Uuid, {
    title: 'Investment',
    description: 'Identifier of the investment that the transaction is about.',
    examples: ['c1a9e0f2-6d3b-4b7e-9a51-70d2f8b3e645'],
  }),
}
