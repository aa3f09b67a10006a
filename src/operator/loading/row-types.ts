import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import { AccountTransaction } from '../../schemas/account-transaction.ts'
import { columnOf } from '../../schemas/fields.ts'
import { PortfolioTransaction } from '../../schemas/portfolio-transaction.ts'
import { AssetsTransferOrder } from '../../schemas/transfer-order.ts'
import { groupOf, type Rule, ruleOf } from './rules.ts'

/** A member of a JSON object: a scalar, or an object with members. */
export interface Field {
  path: string
  /** Own name in quotes, as in the source. */
  quotedName: Buffer
  position: number
  /** Index of its column, or of the first column of its members. */
  column: number
  rule: Rule
  members: Fields | undefined
  nullable: boolean
  /** JSON writes its value in quotes. */
  isText: boolean
  /** Value of the column if the field is left out; undefined: the field is required. */
  absent: string | null | undefined
  sqlType: string
}

export interface Fields {
  /** Start of the members' paths: `retentionDetail.`, or empty. */
  prefix: string
  inOrder: readonly Field[]
  byName: ReadonlyMap<string, Field>
}

/** Types of columns by the format or type of a field; other fields are texts. */
const SQL_TYPES: Record<string, string> = {
  uuid: 'uuid',
  date: 'date',
  decimal: 'numeric',
  boolean: 'boolean',
  'date-time': 'timestamptz',
}

/** Describes the members of an object schema. Appends the names of their columns to `columns`. */
function fieldsOf(schema: TSchema, columns: string[], prefix = ''): Fields {
  const byName = new Map<string, Field>()
  for (const [name, property] of Object.entries<TSchema>(schema.properties)) {
    const path = `${prefix}${name}`
    const column = columns.length
    const members = property.properties && fieldsOf(property, columns, `${path}.`)
    if (!members) columns.push(columnOf(path))
    const types = [property.type].flat()
    const nullable = types.includes('null')
    byName.set(name, {
      path,
      quotedName: Buffer.from(JSON.stringify(name)),
      position: byName.size,
      column,
      rule: members ? groupOf([...members.byName.keys()]) : ruleOf(property),
      members,
      nullable,
      isText: types.includes('string'),
      absent: property.default ?? (nullable ? null : undefined),
      sqlType: members ? 'jsonb' : (SQL_TYPES[property.format ?? types[0]] ?? 'text'),
    })
  }
  return { prefix, inOrder: [...byName.values()], byName }
}

export type List = 'portfolioTransactions' | 'accountTransactions' | 'transferOrders'

export interface RowType {
  noun: string
  /** Name of its list in a refresh. */
  list: List
  table: string
  fields: Fields
  columns: string[]
  decimals: string[]
  /** False for transfer orders, which have no change feed. */
  hasChangeNumbers: boolean
  /** Identifies a row within its connection. */
  key: { field: string; column: string; position: number }
  /** At least one of these fields must have a value, unless the list is empty. */
  oneOf: Field[]
}

interface Definition extends Pick<RowType, 'noun' | 'list' | 'table' | 'hasChangeNumbers'> {
  key: string
  oneOf: string[]
}

function define(schema: TObject, { key, oneOf, ...names }: Definition): RowType {
  const columns: string[] = []
  const fields = fieldsOf(schema, columns)
  const scalars = fields.inOrder.flatMap((field) => field.members?.inOrder ?? [field])
  const decimals = scalars.filter(({ sqlType }) => sqlType === 'numeric')
  return {
    ...names,
    fields,
    columns,
    decimals: decimals.map(({ path }) => columnOf(path)),
    key: { field: key, column: columnOf(key), position: columns.indexOf(columnOf(key)) },
    oneOf: fields.inOrder.filter(({ path }) => oneOf.includes(path)),
  }
}

/** Marks an order without `completedAt` in the staged rows. The input cannot contain `infinity`. */
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
