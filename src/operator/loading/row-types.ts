import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { AccountTransaction } from '../../schemas/account-transaction.ts'
import { columnOf } from '../../schemas/fields.ts'
import { PortfolioTransaction } from '../../schemas/portfolio-transaction.ts'
import { AssetsTransferOrder } from '../../schemas/transfer-order.ts'
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

interface Definition extends Pick<RowType, 'noun' | 'list' | 'table' | 'hasChangeNumbers'> {
  key: string
  oneOf: string[]
}

function define(schema: TObject, { key, oneOf, ...names }: Definition): RowType {
  const columns: Column[] = []
  const fields = fieldsOf(schema, columns)
  const column = columnOf(key)
  const index = columns.findIndex(({ name }) => name === column)
  const dates = fields.inOrder.filter(({ path }) => oneOf.includes(path))
  return { ...names, fields, columns, key: { field: key, column, index }, oneOf: dates }
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

export type RowTypeName = 'portfolio-transactions' | 'account-transactions' | 'transfer-orders'

/** Import types (sections 2.2, 2.3 and 2.7) by their name on the command line. */
export const rowTypes: Readonly<Record<RowTypeName, RowType>> = {
  'portfolio-transactions': define(PortfolioTransaction, {
    noun: 'portfolio transaction',
    list: 'portfolioTransactions',
    table: 'portfolio_transaction',
    hasChangeNumbers: true,
    key: 'transactionId',
    oneOf: ['operationDateDay', 'valueDateDay'],
  }),
  'account-transactions': define(AccountTransaction, {
    noun: 'account transaction',
    list: 'accountTransactions',
    table: 'account_transaction',
    hasChangeNumbers: true,
    key: 'movementId',
    oneOf: ['operationDateDay', 'valueDateDay'],
  }),
  'transfer-orders': define(withCompletion(AssetsTransferOrder), {
    noun: 'transfer order',
    list: 'transferOrders',
    table: 'assets_transfer_order',
    hasChangeNumbers: false,
    key: 'id',
    oneOf: [],
  }),
}
