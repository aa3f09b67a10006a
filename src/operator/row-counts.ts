import { type Kysely, sql } from 'kysely'
import type { Tables } from '../database/tables.ts'

/** How many rows of each kind there are. */
export interface RowCounts {
  portfolioTransactions: number
  accountTransactions: number
  transferOrders: number
}

/** Counts the rows of connections themselves: the books do not know of transfer orders. */
export async function countRows(db: Kysely<Tables>, connectionIds: string[]): Promise<RowCounts> {
  const count = (table: string) => sql`
    (select count(*) from ${sql.table(table)} where connection_id = any(${connectionIds}::bigint[]))`
  const { rows } = await sql<RowCounts>`
    select ${count('portfolio_transaction')}::float8 as "portfolioTransactions",
      ${count('account_transaction')}::float8 as "accountTransactions",
      ${count('assets_transfer_order')}::float8 as "transferOrders"`.execute(db)
  return rows[0] ?? { portfolioTransactions: 0, accountTransactions: 0, transferOrders: 0 }
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

/** A number and what it counts: `1 token`, `2 tokens`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
