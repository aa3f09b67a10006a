import { type TSchema, Type } from '@sinclair/typebox'
import { AccountTransactions } from '../../schemas/account-transaction.ts'
import { columnOf } from '../../schemas/fields.ts'
import type { ListDefinition } from '../../schemas/list.ts'
import { PortfolioTransactions } from '../../schemas/portfolio-transaction.ts'
import { TransferOrders } from '../../schemas/transfer-order.ts'
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

interface Column {
  name: string
  member: string
  sqlType: string
}

/** Describes the members of an object schema. Appends their columns to `columns`. */
function fieldsOf(schema: TSchema, columns: Column[], prefix = ''): Fields {
  const fields = new Map<string, Field>()
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const path = prefix + name
    const index = columns.length
    const members = property.properties && fieldsOf(property, columns, `${path}.`)
    const { sqlType, rule: scalar } = formatOf(property)
    if (!members) columns.push({ name: columnOf(path), member: name, sqlType })
    const nullable = [property.type].flat().includes('null')
    const rule = members ? groupOf([...members.keys()]) : scalar
    const absent = property.default ?? (nullable ? null : undefined)
    fields.set(name, { path, index, rule, members, nullable, absent })
  }
  return fields
}

export type List = 'portfolioTransactions' | 'accountTransactions' | 'transferOrders'

export interface RowType {
  noun: string
  list: List
  table: string
  fields: Fields
  columns: Column[]
  /** False for transfer orders, which have no change feed. */
  hasChangeNumbers: boolean
  /** Identifies a row within its connection. */
  key: { field: string; column: string; index: number }
  /** Dates of which one must have a value; the first one with a value is the effective date. Empty: no dates. */
  dates: Field[]
}

function define({ name, table, id, paged, item }: ListDefinition, ...dates: string[]): RowType {
  const columns: Column[] = []
  const fields = fieldsOf(item, columns)
  const fieldOf = (name: string) => fields.get(name) as Field
  return {
    noun: name.replaceAll('-', ' ').replace(/s$/, ''),
    list: name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase()) as List,
    table,
    fields,
    columns,
    hasChangeNumbers: paged,
    key: { field: id, column: columnOf(id), index: fieldOf(id).index },
    dates: dates.map(fieldOf),
  }
}

/** Marks an order without `completedAt` among the rows. The input cannot contain `infinity`. */
export const COMPLETION_ABSENT = 'infinity'

/** Adds the time of completion, which the API does not show. Null: not completed yet. */
function withCompletion({ item, ...list }: typeof TransferOrders): ListDefinition {
  const completedAt = Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    default: COMPLETION_ABSENT,
  })
  return { ...list, item: Type.Object({ ...item.properties, completedAt }) }
}

export type RowTypeName = 'portfolio-transactions' | 'account-transactions' | 'transfer-orders'

/** Import types (sections 2.2, 2.3 and 2.7) by their name on the command line. */
export const rowTypes: Readonly<Record<RowTypeName, RowType>> = {
  'portfolio-transactions': define(PortfolioTransactions, 'operationDateDay', 'valueDateDay'),
  'account-transactions': define(AccountTransactions, 'operationDateDay', 'valueDateDay'),
  'transfer-orders': define(withCompletion(TransferOrders)),
}
