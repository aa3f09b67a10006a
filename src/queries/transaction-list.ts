import type { Static, TObject } from '@sinclair/typebox'
import type { SelectQueryBuilder } from 'kysely'
import type { Database } from '../database/database.ts'
import type { Flat } from './flat.ts'
import { answer, type ConnectionFacts, type Reply, replyQuery } from './reply.ts'
import { firstPage, laterPage, type TransactionTable } from './transaction-page.ts'

/** What a request for a list of transactions says besides. */
export interface ListFacts extends ConnectionFacts {
  /** Days, YYYY-MM-DD, both inclusive; undefined leaves that end open. */
  from: string | undefined
  to: string | undefined
  /** Rows of a page, and its number from 0. */
  limit: number
  page: number
}

/**
 * A query for the pages of one of the two lists.
 * @returns a function of (db, facts) that reads one page, its total and the connection's version in one
 * snapshot
 */
export function transactionList<Item extends TObject, DB, TB extends keyof DB>(
  table: TransactionTable,
  item: Item,
  rows: SelectQueryBuilder<DB, TB, Flat<Static<Item>>>,
): (db: Database, facts: ListFacts) => Promise<Reply> {
  const queryFor = (page: typeof firstPage, name: string) =>
    replyQuery({
      name: `${table} ${name}`,
      item,
      head: (kind) => page.head(kind, table),
      rows: page.rows(rows, table),
    })
  const first = queryFor(firstPage, 'first page')
  const later = queryFor(laterPage, 'later page')
  return (db, facts) => {
    const { from = '-infinity', to = 'infinity', limit, page } = facts
    const [query, ...offset] = page === 0 ? [first] : [later, String(limit * page)]
    const values = [from, to, String(limit), ...offset]
    return answer(db, query, facts, values, ({ totalItems }) => ({
      opening: '{"items":[',
      closing: `],"limit":${limit},"page":${page},"totalItems":${totalItems}}`,
    }))
  }
}
