import { type TObject, Type } from '@sinclair/typebox'
import { AccountTransaction } from '../../schemas/account-transaction.ts'
import { PortfolioTransaction } from '../../schemas/portfolio-transaction.ts'
import { AssetsTransferOrder } from '../../schemas/transfer-order.ts'
import { columnOf, type Field, type Fields, fieldsOf } from './fields.ts'

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
