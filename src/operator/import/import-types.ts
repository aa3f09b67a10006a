import type { TSchema } from '@sinclair/typebox'
import { type TObject, Type } from '@sinclair/typebox'
import { AccountTransaction } from '../../schemas/account-transaction.ts'
import { PortfolioTransaction } from '../../schemas/portfolio-transaction.ts'
import { AssetsTransferOrder } from '../../schemas/transfer-order.ts'
import { groupOf, type Rule, ruleOf } from './rules.ts'

/** A member of a JSON object: a scalar, or an object with members of its own. */
export interface Field {
  /** Its name, after that of the object that it is in: `retentionDetail.retentionTo`. */
  path: string
  /** Its own name in quotes, as it stands in the source. */
  quotedName: Buffer
  /** Which of its siblings it is. */
  position: number
  /** Which column is its own, or the first of its own. */
  column: number
  rule: Rule
  members: Fields | undefined
  nullable: boolean
  /** What the column holds where the field is left out; undefined: it may not be. */
  absent: string | null | undefined
}

export interface Fields {
  /** What the paths of the members begin with: `retentionDetail.`, or nothing. */
  prefix: string
  inOrder: readonly Field[]
  byName: ReadonlyMap<string, Field>
}

/**
 * The members that an object schema demands. The names of the columns that they go to, in the order
 * of the members, are appended to `columns`.
 */
function fieldsOf(schema: TSchema, columns: string[], prefix = ''): Fields {
  const properties = Object.entries<TSchema>(schema.properties)
  const inOrder = properties.map(([name, property], position): Field => {
    const path = `${prefix}${name}`
    const column = columns.length
    const members = property.properties && fieldsOf(property, columns, `${path}.`)
    if (!members) columns.push(columnOf(path))
    return {
      path,
      quotedName: Buffer.from(JSON.stringify(name)),
      position,
      column,
      rule: members ? groupOf([...members.byName.keys()]) : ruleOf(property),
      members,
      nullable: isNullable(property),
      absent: property.default ?? (isNullable(property) ? null : undefined),
    }
  })
  const byName = new Map(inOrder.map((field, index) => [properties[index]?.[0] ?? '', field]))
  return { prefix, inOrder, byName }
}

function isNullable({ type }: TSchema): boolean {
  return Array.isArray(type) && type.includes('null')
}

/** `operationDateDay` goes to operation_date_day, and `marketer.cif` to marketer_cif. */
function columnOf(path: string): string {
  // The names of these two say by themselves what they are part of.
  const name = path.replace('retentionDetail.', '').replace('.', '_')
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)
}

/** One thing that can be imported, and the table that it goes to. */
export interface Kind {
  /** What a person calls one row. */
  noun: string
  table: string
  fields: Fields
  columns: string[]
  /** What tells one row from another within a connection. */
  key: { field: string; column: string }
  /** Fields of which one at least must be known; none where this is empty. */
  oneOf: Field[]
}

/** Stands in `completed_at` for an order that does not tell; none can tell `infinity` itself. */
export const COMPLETION_NOT_TOLD = 'infinity'

export type KindName = 'portfolio-transactions' | 'account-transactions' | 'transfer-orders'

/** What can be imported (sections 2.2, 2.3 and 2.7), by its name on the command line. */
export const kinds: Readonly<Record<KindName, Kind>> = {
  'portfolio-transactions': kindOf(PortfolioTransaction, {
    noun: 'portfolio transaction',
    table: 'portfolio_transaction',
    key: 'transactionId',
    oneOf: ['operationDateDay', 'valueDateDay'],
  }),
  'account-transactions': kindOf(AccountTransaction, {
    noun: 'account transaction',
    table: 'account_transaction',
    key: 'movementId',
    oneOf: ['operationDateDay', 'valueDateDay'],
  }),
  'transfer-orders': kindOf(withCompletion(AssetsTransferOrder), {
    noun: 'transfer order',
    table: 'assets_transfer_order',
    key: 'id',
    oneOf: [],
  }),
}

interface Facts {
  noun: string
  table: string
  key: string
  oneOf: string[]
}

function kindOf(schema: TObject, { noun, table, key, oneOf }: Facts): Kind {
  const columns: string[] = []
  const fields = fieldsOf(schema, columns)
  return {
    noun,
    table,
    fields,
    columns,
    key: { field: key, column: columnOf(key) },
    oneOf: fields.inOrder.filter(({ path }) => oneOf.includes(path)),
  }
}

/** An import tells more than the API: when the user completed the order, or null if not yet. */
function withCompletion(schema: TObject): TObject {
  const completedAt = Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    default: COMPLETION_NOT_TOLD,
  })
  return Type.Object({ ...schema.properties, completedAt })
}
