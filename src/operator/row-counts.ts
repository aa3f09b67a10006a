import { type Kysely, sql } from 'kysely'
import type { Tables } from '../database/tables.ts'
import { counted } from './counted.ts'

/** How many rows of each kind there are. */
export interface RowCounts {
  portfolioTransactions: number
  accountTransactions: number
  transferOrders: number
}

/** Counts the rows of connections themselves: the books do not know of transfer orders. */
export async function countRows(db: Kysely<Tables>, connectionIds: string[]): Promise<RowCounts> {
  const count = (table: string) => sql<number>`
    (select count(*)::float8 from ${sql.table(table)}
      where connection_id = any(${connectionIds}::bigint[]))`
  return await db
    .selectNoFrom([
      count('portfolio_transaction').as('portfolioTransactions'),
      count('account_transaction').as('accountTransactions'),
      count('assets_transfer_order').as('transferOrders'),
    ])
    .executeTakeFirstOrThrow()
}

/** In words, for people. */
export function rowsInWords(counts: RowCounts): string {
  const { portfolioTransactions, accountTransactions, transferOrders } = counts
  return (
    `${counted(portfolioTransactions, 'portfolio transaction')}, ` +
    `${counted(accountTransactions, 'account transaction')} and ` +
    counted(transferOrders, 'transfer order')
  )
}
