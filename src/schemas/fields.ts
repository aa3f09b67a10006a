import { type Static, type TObject, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'

/** Keyword with the name of a part: fields copy its schema for the row writer. OpenAPI has references to it. */
export const PART = 'x-part'

/** Refers to a schema by its `$id`, and has its type. The app registers the schema once. */
export function Reference<T extends TSchema>({ $id }: T): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>(Type.Ref(String($id)))
}

/** Maps a field to its column: `operationDateDay` to operation_date_day, `marketer.cif` to marketer_cif. */
export function columnOf(path: string): string {
  // The columns of this object have no prefix.
  const name = path.replace('retentionDetail.', '').replace('.', '_')
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)
}

export interface Column {
  path: string
  schema: TSchema
  group?: { name: string; first: boolean; last: boolean }
}

/** Columns of an item, in the order of a SELECT and a response. An object has none, but each of its members. */
export function columnsOf(item: TObject): Column[] {
  return Object.entries(item.properties).flatMap(([name, schema]): Column[] => {
    if (schema.properties === undefined) return [{ path: name, schema }]
    const members = Object.entries<TSchema>(schema.properties)
    return members.map(([member, memberSchema], index) => ({
      path: `${name}.${member}`,
      schema: memberSchema,
      group: { name, first: index === 0, last: index === members.length - 1 },
    }))
  })
}

export function Described<T extends TSchema>(schema: T, description: string): T {
  return { ...schema, description }
}

/** Allows null for an unknown value (contract 10). The schema needs a `type`: a reference or a union has none. */
export function Nullable<T extends TSchema>(
  schema: T,
  description: string,
): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({ ...schema, description, type: [schema.type, 'null'] })
}

/** Writes text in Markdown, which reads `<token>` as a tag of HTML. */
const markdown = (text: string): string => text.replaceAll('<', '&lt;')

/** String of a closed list: the keys of `entries`. The description ends in a table of them. */
export function ClosedList<Value extends string, Entry>(
  entries: Record<Value, Entry>,
  meaningOf: (entry: Entry) => string,
  description: string,
  keywords = {},
): TUnsafe<Value> {
  const values = Object.keys(entries)
  const meanings = Object.values<Entry>(entries).map(meaningOf)
  const rows = meanings.map((meaning, at) => `| \`${values[at]}\` | ${markdown(meaning)} |`)
  return Type.Unsafe<Value>({
    type: 'string',
    enum: values,
    description: [description, '', '| Value | Meaning |', '|---|---|', ...rows].join('\n'),
    'x-enum-descriptions': meanings,
    ...keywords,
  })
}

export const Uuid = Type.String({
  format: 'uuid',
  pattern: '^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$',
  description: 'A UUID, written in lower case.',
})

/** Names, codes and times of day. The limit is the one of the database columns. */
export const ShortText = Type.String({ maxLength: 255 })

/** Running text. The limit bounds the size of a page. */
const LongText = Type.String({ maxLength: 10_000 })

export const DECIMAL_INTEGER_DIGITS = 38
export const DECIMAL_FRACTION_DIGITS = 38

const DECIMAL_ADVICE =
  'A binary float keeps about 16 digits: read these fields with a parser that supports decimals.'

export const DECIMAL_RULE =
  'Decimals are exact: they have the digits that the institution gave, with trailing zeros and ' +
  `without an exponent. A decimal has up to ${DECIMAL_INTEGER_DIGITS} digits before the point ` +
  `and ${DECIMAL_FRACTION_DIGITS} after it. ${DECIMAL_ADVICE}`

/** An exact decimal (contract 11). It is a string of digits in this program. */
export const Decimal = Type.Unsafe<string>({
  [PART]: 'Decimal',
  type: 'number',
  format: 'decimal',
  description: DECIMAL_RULE,
})

const EXACT_DECIMAL = `^-?[0-9]{1,${DECIMAL_INTEGER_DIGITS}}(?:\\.[0-9]{1,${DECIMAL_FRACTION_DIGITS}})?$`

/** Returns a schema with decimals as JSON strings, and with `Exact` before its names and those of its parts. */
export function exactDecimals<T extends TSchema>(schema: T): T {
  return withExactDecimals(schema) as T
}

function withExactDecimals(part: unknown): unknown {
  if (typeof part === 'string') return part.replace(DECIMAL_ADVICE, 'It is a JSON string.')
  if (Array.isArray(part)) return part.map(withExactDecimals)
  if (typeof part !== 'object' || part === null) return part
  const exact: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(part)) exact[keyword] = withExactDecimals(value)
  for (const keyword of ['$id', '$ref'])
    if (typeof exact[keyword] === 'string') exact[keyword] = `Exact${exact[keyword]}`
  if (exact[PART] !== undefined && hasDecimals(part)) exact[PART] = `Exact${exact[PART]}`
  if (exact.format === 'decimal') {
    exact.type = exact.type === 'number' ? 'string' : ['string', 'null']
    exact.pattern = EXACT_DECIMAL
  }
  return exact
}

function hasDecimals(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false
  return ('format' in part && part.format === 'decimal') || Object.values(part).some(hasDecimals)
}

// Without look-ahead, which many regular expression engines lack.
const YEAR = '(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)'
const MONTH = '(?:0[1-9]|1[0-2])'
const DAY = '(?:0[1-9]|[12][0-9]|3[01])'

/** A calendar day (contract 3). The format `date` checks that the day exists. */
const CalendarDate = Type.String({
  format: 'date',
  pattern: `^${YEAR}-${MONTH}-${DAY}$`,
  description: 'An existing day, as YYYY-MM-DD, in the years 0001 to 9999, without a time zone.',
})

/** Definition of the date that lists filter and sort by (contract 4 and 8). */
export const EFFECTIVE_DATE =
  'the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date)'

const timeOf = (day: string) =>
  Nullable(ShortText, `Time of day on \`${day}\`, usually HH:mm:ss. Other notations may occur.`)

const zoneOf = (fields: 'operation' | 'value') =>
  Nullable(ShortText, `Time zone of the original ${fields} fields, usually an IANA name.`)

/** Part of the description of a type of transaction. */
export const UNKNOWN_TYPE =
  'A transaction that cannot be classified at first has the type `UNKNOWN`. When the cause is ' +
  'resolved and the credential connects again, the same row has the correct type.'

/** Fields of both types of transaction, in the order of sections 2.2 and 2.3. */
export const TransactionDates = {
  operationDateDay: Nullable(
    CalendarDate,
    'Day of the transaction. Lists are sorted by it. Null only if `valueDateDay` is known.',
  ),
  originalOperationDateDay: Nullable(CalendarDate, 'Operation date in `originalOperationDateTz`.'),
  valueDateDay: Nullable(
    CalendarDate,
    'First day in the position or the balance. Lists sort by it if there is no operation date.',
  ),
  originalValueDateDay: Nullable(CalendarDate, 'Value date in `originalValueDateTz`.'),
  operationDateHour: timeOf('operationDateDay'),
  originalOperationDateHour: timeOf('originalOperationDateDay'),
  valueDateHour: timeOf('valueDateDay'),
  originalValueDateHour: timeOf('originalValueDateDay'),
  originalOperationDateTz: zoneOf('operation'),
  originalValueDateTz: zoneOf('value'),
}

/** Fields of both types of transaction on cost, currency and investment (sections 2.2 and 2.3). */
export const TransactionTerms = {
  exchangeRate: Nullable(
    Decimal,
    'Rate between two currencies. The divisor is not defined: compare the amounts before you convert.',
  ),
  commission: Nullable(Decimal, 'Charge, in `currency`. It is negative at some institutions.'),
  taxes: Nullable(Decimal, 'Taxes, in `currency`. They are negative at some institutions.'),
  currency: Nullable(
    ShortText,
    'Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).',
  ),
  localCurrency: Nullable(ShortText, 'Second currency, for example that of the quoted price.'),
  description: Nullable(LongText, 'Text of the institution, in its language.'),
  investment: Nullable(Uuid, 'Identifier of the investment that the transaction concerns.'),
}
