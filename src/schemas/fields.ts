import { type Static, type TObject, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import { DAY_PATTERN } from './formats.ts'

/** Key of the schema that a reference stands for. JSON has no symbols, so the OpenAPI document has `$ref` alone. */
const TARGET = Symbol('target')

type Referring = TSchema & { [TARGET]?: TSchema }

/** Refers to a schema by its `$id`, and has its type. The OpenAPI document has the schema once. */
export function Reference<T extends TSchema>(
  target: T,
  annotations: { description?: string } = {},
): TUnsafe<Static<T>> {
  const reference = Type.Ref(String(target.$id), annotations)
  return Type.Unsafe<Static<T>>({ ...reference, [TARGET]: target })
}

/** Returns the schema that a reference stands for, also of one that allows null. Other schemas stand for themselves. */
export function resolved(schema: Referring): TSchema {
  return schema[TARGET] ?? schema
}

/** Returns schemas and all that they refer to, each once. */
export function withReferences(schemas: readonly TSchema[]): TSchema[] {
  const found = new Set(schemas)
  // The loop also visits what it adds.
  for (const schema of found) for (const target of targetsIn(schema)) found.add(target)
  return [...found]
}

function targetsIn(part: unknown): TSchema[] {
  if (typeof part !== 'object' || part === null) return []
  const { [TARGET]: target } = part as Referring
  return target === undefined ? Object.values(part).flatMap(targetsIn) : [target]
}

/** Maps a field to its column: `operationDateDay` to operation_date_day, `marketer.cif` to marketer_cif. */
export function columnOf(path: string): string {
  // The columns of this object have no prefix.
  const name = path.replace('retentionDetail.', '').replace('.', '_')
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)
}

export interface Column {
  path: string
  /** Without references. */
  schema: TSchema
  nullable: boolean
  group?: { name: string; first: boolean; last: boolean }
}

/** Columns of an item, in the order of a SELECT and a response. An object has none, but each of its members. */
export function columnsOf(item: TObject): Column[] {
  return Object.entries(item.properties).flatMap(([name, property]): Column[] => {
    const schema = resolved(property)
    const nullable = isNullable(property)
    if (schema.properties === undefined) return [{ path: name, schema, nullable }]
    const members = Object.entries<TSchema>(schema.properties)
    return members.map(([member, memberSchema], index) => ({
      path: `${name}.${member}`,
      schema: resolved(memberSchema),
      nullable,
      group: { name, first: index === 0, last: index === members.length - 1 },
    }))
  })
}

/** Gives a field its description. */
export function Described<T extends TSchema>(schema: T, description: string): TUnsafe<Static<T>> {
  if (schema.$id !== undefined) return Reference(schema, { description })
  return Type.Unsafe<Static<T>>({ ...schema, description })
}

/** Allows null for an unknown value. */
export function Nullable<T extends TSchema>(
  schema: T,
  description: string,
): TUnsafe<Static<T> | null> {
  if (schema.$id === undefined)
    return Type.Unsafe<Static<T> | null>({ ...schema, description, type: [schema.type, 'null'] })
  return Type.Unsafe<Static<T> | null>({
    anyOf: [Reference(schema), Type.Null()],
    description,
    [TARGET]: schema,
  })
}

/** True if the schema is of `Nullable()`. */
export function isNullable({ type, anyOf = [] }: TSchema): boolean {
  return [type].flat().includes('null') || anyOf.some(isNullable)
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

const NUMBER_ADVICE =
  'A binary float keeps about 16 digits: read these fields with a parser that supports decimals.'

/** Explains the decimals of a schema. @param exact true: they are JSON strings */
export function decimalRule(exact: boolean): string {
  return (
    'Decimals are exact: they have the digits that the institution gave, with trailing zeros and ' +
    `without an exponent. A decimal has up to ${DECIMAL_INTEGER_DIGITS} digits before the point ` +
    `and ${DECIMAL_FRACTION_DIGITS} after it. ${exact ? 'It is a JSON string.' : NUMBER_ADVICE}`
  )
}

const DecimalNumber = Type.Unsafe<string>({
  $id: 'Decimal',
  type: 'number',
  format: 'decimal',
  description: decimalRule(false),
})

const DecimalString = Type.Unsafe<string>({
  $id: 'ExactDecimal',
  type: 'string',
  format: 'decimal',
  description: decimalRule(true),
  pattern: `^-?[0-9]{1,${DECIMAL_INTEGER_DIGITS}}(?:\\.[0-9]{1,${DECIMAL_FRACTION_DIGITS}})?$`,
})

/** An exact decimal. It is a string of digits in this program. @param exact true: a JSON string, too */
export function Decimal(exact: boolean): TUnsafe<string> {
  return exact ? DecimalString : DecimalNumber
}

/** Name of a schema that has decimals. */
export function nameOf(name: string, exact: boolean): string {
  return exact ? `Exact${name}` : name
}

/** A calendar day. The format `date` checks that the day exists. */
const CalendarDate = Type.String({
  format: 'date',
  pattern: DAY_PATTERN,
  description: 'An existing day, as YYYY-MM-DD, in the years 0001 to 9999, without a time zone.',
})

/** Definition of the date that lists filter and sort by. */
export const EFFECTIVE_DATE =
  'the effective date (`operationDateDay`, or `valueDateDay` if there is no operation date)'

/** Marks an hour. The document has no pattern, because old rows may have other texts. */
const HOUR = Symbol('hour')

export function isHourField(schema: TSchema & { [HOUR]?: true }): boolean {
  return schema[HOUR] === true
}

function timeOf(day: string) {
  const description = `Time of day on \`${day}\`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may have other texts.`
  return { ...Nullable(ShortText, description), [HOUR]: true as const }
}

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
export function TransactionTerms(exact: boolean) {
  return {
    exchangeRate: Nullable(
      Decimal(exact),
      'Rate between two currencies. The divisor is not defined: compare the amounts before you convert.',
    ),
    commission: Nullable(
      Decimal(exact),
      'Charge, in `currency`. It is negative at some institutions.',
    ),
    taxes: Nullable(
      Decimal(exact),
      'Taxes, in `currency`. They are negative at some institutions.',
    ),
    currency: Nullable(
      ShortText,
      'Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).',
    ),
    localCurrency: Nullable(ShortText, 'Second currency, for example that of the quoted price.'),
    description: Nullable(LongText, 'Text of the institution, in its language.'),
    investment: Nullable(Uuid, 'Identifier of the investment that the transaction concerns.'),
  }
}
