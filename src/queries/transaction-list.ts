import type { Static, TObject } from '@sinclair/typebox'
import type { SelectQueryBuilder } from 'kysely'
import type { Database } from '../database/database.ts'
import type { CallerKind } from './calling-app.ts'
import type { Flat } from './flat.ts'
import { answer, type ConnectionFacts, type Reply, type ReplyQuery, replyQuery } from './reply.ts'
import type { TransactionTable } from './transaction-books.ts'
import { pageFor, pages } from './transaction-page.ts'

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
  const queries = new Map(
    Object.entries(pages).map(([name, page]) => {
      const head = (kind: CallerKind) => page.head(kind, table)
      const parts = { name: `${table} ${name}`, item, head, rows: page.rows(rows, table) }
      return [name, replyQuery(parts)]
    }),
  )
  return (db, facts) => {
    const { from = '-infinity', to = 'infinity', limit, page } = facts
    const query = queries.get(pageFor(facts)) as ReplyQuery
    const values = [from, to, String(limit), ...(page === 0 ? [] : [String(limit * page)])]
    return answer(db, query, facts, values, ({ totalItems }) => ({
      opening: '{"items":[',
      closing: `],"limit":${limit},"page":${page},"totalItems":${totalItems}}`,
    }))
  }
}
