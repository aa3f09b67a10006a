import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { AccountTransactions } from '../../schemas/account-transaction.ts'
import { columnOf } from '../../schemas/fields.ts'
import type { ListDefinition } from '../../schemas/list.ts'
import { PortfolioTransactions } from '../../schemas/portfolio-transaction.ts'
import { TransferOrders } from '../../schemas/transfer-order.ts'
import { groupOf, type Rule, ruleOf } from './rules.ts'

/** A member of a JSON object: a scalar, or an object with members. */
export interface Field {
  name: string
  path: string
  /** Index of its column, or of the first column of its members. */
  index: number
  rule: Rule
  /** Values of a closed list. */
  values: string[] | undefined
  members: Fields | undefined
  nullable: boolean
  /** Value of the column if the field is left out; undefined: the field is required. */
  absent: string | null | undefined
}

export interface Fields {
  /** Start of the members' paths: `retentionDetail.`, or empty. */
  prefix: string
  inOrder: readonly Field[]
  byName: ReadonlyMap<string, Field>
}

interface Column {
  name: string
  sqlType: string
}

/** Types of columns by the format or type of a field; other fields are texts. */
const SQL_TYPES: Record<string, string> = {
  uuid: 'uuid',
  date: 'date',
  decimal: 'numeric',
  boolean: 'boolean',
  'date-time': 'timestamptz',
}

/** Describes the members of an object schema. Appends their columns to `columns`. */
function fieldsOf(schema: TSchema, columns: Column[], prefix = ''): Fields {
  const inOrder = Object.entries<TSchema>(schema.properties).map(([name, property]): Field => {
    const path = `${prefix}${name}`
    const index = columns.length
    const members = property.properties && fieldsOf(property, columns, `${path}.`)
    const types = [property.type].flat()
    const sqlType = SQL_TYPES[property.format ?? types[0]] ?? 'text'
    if (!members) columns.push({ name: columnOf(path), sqlType })
    const nullable = types.includes('null')
    const rule = members ? groupOf([...members.byName.keys()]) : ruleOf(property)
    const absent = property.default ?? (nullable ? null : undefined)
    return { name, path, index, rule, values: property.enum, members, nullable, absent }
  })
  return { prefix, inOrder, byName: new Map(inOrder.map((field) => [field.name, field])) }
}

export type List = 'portfolioTransactions' | 'accountTransactions' | 'transferOrders'

export interface RowType {
  noun: string
  /** Name of its list in a refresh. */
  list: List
  table: string
  fields: Fields
  columns: Column[]
  /** False for transfer orders, which have no change feed. */
  hasChangeNumbers: boolean
  /** Identifies a row within its connection. */
  key: { field: string; column: string; index: number }
  /** At least one of these fields must have a value, unless the list is empty. The first one is the effective date. */
  oneOf: Field[]
}

/** @param dates fields of which one must have a value */
function define(list: ListDefinition, item: TObject, dates: string[] = []): RowType {
  const { name, table, id, paged } = list
  const columns: Column[] = []
  const fields = fieldsOf(item, columns)
  const column = columnOf(id)
  const index = columns.findIndex(({ name }) => name === column)
  return {
    noun: name.replaceAll('-', ' ').replace(/s$/, ''),
    list: name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase()) as List,
    table,
    fields,
    columns,
    hasChangeNumbers: paged,
    key: { field: id, column, index },
    oneOf: fields.inOrder.filter(({ path }) => dates.includes(path)),
  }
}

/** Marks an order without `completedAt` among the rows. The input cannot contain `infinity`. */
export const COMPLETION_ABSENT = 'infinity'

/** Adds the time of completion, which the API does not show. Null: not completed yet. */
function withCompletion(schema: TObject): TObject {
  const completedAt = Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    default: COMPLETION_ABSENT,
  })
  return Type.Object({ ...schema.properties, completedAt })
}

/** The first one is the effective date, unless it is null. */
const DATES = ['operationDateDay', 'valueDateDay']

export type RowTypeName = 'portfolio-transactions' | 'account-transactions' | 'transfer-orders'

/** Import types (sections 2.2, 2.3 and 2.7) by their name on the command line. */
export const rowTypes: Readonly<Record<RowTypeName, RowType>> = {
  'portfolio-transactions': define(PortfolioTransactions, PortfolioTransactions.item, DATES),
  'account-transactions': define(AccountTransactions, AccountTransactions.item, DATES),
  'transfer-orders': define(TransferOrders, withCompletion(TransferOrders.item)),
}
