import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { columnOf, isHourField, isNullable, resolved } from '../../schemas/fields.ts'
import { type List, NOW } from '../../schemas/list.ts'
import { lists } from '../../schemas/lists.ts'
import { formatOf, groupOf, type Rule } from './rules.ts'

/** A member of a JSON object: a scalar, or an object with members. */
export interface Field {
  path: string
  /** Index of its column, or of the first column of its members. */
  index: number
  rule: Rule
  members: Fields | undefined
  nullable: boolean
  /** Value of the column if the field is left out; undefined: the field is required. */
  absent: string | null | undefined
}

export type Fields = ReadonlyMap<string, Field>

export interface Column {
  name: string
  member: string
  sqlType: string
  /** True if the value is the time of the import, unless the input or the row has one. */
  defaultsToNow: boolean
}

/** Describes the members of an object schema. Appends their columns to `columns`. */
function fieldsOf(schema: TSchema, columns: Column[], prefix = ''): Fields {
  const fields = new Map<string, Field>()
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const path = prefix + name
    const index = columns.length
    const target = resolved(property)
    const members = target.properties && fieldsOf(target, columns, `${path}.`)
    const { sqlType, rule: scalar } = formatOf(target)
    const defaultsToNow = property.default === NOW
    if (!members) columns.push({ name: columnOf(path), member: name, sqlType, defaultsToNow })
    const nullable = isNullable(property)
    const rule = members ? groupOf([...members.keys()]) : scalar
    const field: Field = { path, index, rule, members, nullable, absent: undefined }
    if (nullable) field.absent = null
    if (defaultsToNow) field.absent = TIME_ABSENT
    fields.set(name, field)
  }
  return fields
}

/** Name of a list in a line of a refresh, such as `portfolioTransactions`. */
export type ListProperty = CamelCase<ListName>

type CamelCase<Name extends string> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name

export interface RowType {
  noun: string
  list: ListProperty
  table: string
  fields: Fields
  columns: Column[]
  /** False for transfer orders, which have no changes since a cursor. */
  hasChangeNumbers: boolean
  /** Identifies a row within its connection. */
  key: { field: string; column: string; index: number }
  /** Dates of which one must have a value; the first one with a value is the effective date. Empty: no dates. */
  dates: Field[]
  /** Hours: new and changed rows must have them in a form that sorts. */
  hours: Field[]
}

function define(definition: List): RowType {
  const { name, table, id, item, hasChanges, dates } = definition
  const columns: Column[] = []
  const fields = fieldsOf(writtenFields(definition), columns)
  const fieldOf = (name: string) => fields.get(name) as Field
  return {
    noun: nounOf(name),
    list: propertyOf(name as ListName),
    table,
    fields,
    columns,
    hasChangeNumbers: hasChanges,
    key: { field: id, column: columnOf(id), index: fieldOf(id).index },
    dates: dates.map(fieldOf),
    hours: Object.keys(item.properties)
      .filter((name) => isHourField(item.properties[name] as TSchema))
      .map(fieldOf),
  }
}

/** Marks a row whose input has no value for a column that defaults to now. The input cannot contain `infinity`. */
export const TIME_ABSENT = 'infinity'

/** Returns the fields that an input may have: those of the API, and those that no response has. */
function writtenFields({ item, hidden }: List): TObject {
  return Type.Object({ ...item.properties, ...hidden })
}

/** Name of a list on the command line, such as `portfolio-transactions`. */
export type ListName = (typeof lists)[number]['name']

/** One row of a list, such as `portfolio transaction`. */
function nounOf(name: string): string {
  return name.replaceAll('-', ' ').replace(/s$/, '')
}

export function propertyOf(name: ListName): ListProperty {
  return name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase()) as ListProperty
}

/** Import types (sections 2.2, 2.3 and 2.7) by their name on the command line. */
export const rowTypes = Object.fromEntries(
  lists.map((definition) => [definition.name, define(definition)]),
) as Readonly<Record<ListName, RowType>>
