import type { Static, TObject } from '@sinclair/typebox'
import { type Expression, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Flat } from '../json/column-map.ts'
import type { Database } from '../postgres/database.ts'
import type { CallerKind } from './caller.ts'
import {
  connectionKeyParameter,
  connectionOfApp,
  type HeadColumns,
  headColumns,
} from './connection.ts'
import {
  answer,
  type ConnectionFacts,
  type Reply,
  type ReplyQuery,
  replyQuery,
} from './read-response.ts'
import {
  from,
  length,
  pageStart,
  type TransactionTable,
  to,
  totalOfAll,
  totalOfDays,
  totalOfMonths,
} from './row-counts.ts'

const KEYS = { portfolio_transaction: 'transaction_id', account_transaction: 'movement_id' }

/** The two parts of a statement for one page of a list: its head, and its rows out of a table's rows `t`. */
interface Page {
  head: (kind: CallerKind, table: TransactionTable) => Expression<HeadColumns>
  rows: <DB, TB extends keyof DB, Columns>(
    rows: SelectQueryBuilder<DB, TB, Columns>,
    table: TransactionTable,
  ) => Expression<Columns>
}

/** A page with nothing before it. */
const firstPage = (total: (table: TransactionTable) => RawBuilder<string>): Page => ({
  head: (kind, table) => connectionOfApp(kind).select(headColumns(total(table))),
  rows: (rows, table) =>
    inOrder(rows, table)
      .where(sql<boolean>`
        t.connection_id = ${connectionKeyParameter} and head.connection_id is not null
        and t.effective_day >= ${from} and t.effective_day <= ${to}`)
      .limit(length),
})

/** Any other page: the day in which it starts is looked up, so that its depth costs next to nothing. */
const laterPage: Page = {
  head: (kind, table) =>
    connectionOfApp(kind)
      .leftJoinLateral(pageStart(table).as('start'), (join) => join.onTrue())
      .select([
        ...headColumns(totalOfMonths(table)),
        'start.effective_day as newest_day',
        'start.skipped',
      ]),
  // Past the end there is no such day, and so no row.
  rows: (rows, table) =>
    inOrder(rows, table)
      .where(sql<boolean>`
        t.connection_id = ${connectionKeyParameter} and head.connection_id is not null
        and t.effective_day >= ${from} and t.effective_day <= head.newest_day`)
      .limit(length)
      .offset(sql<number>`head.skipped`),
}

/**
 * One statement for each, so that a request takes no step that it does not need: to make a step ready
 * costs the database as much as to take it.
 */
const pages = {
  'first page': firstPage(totalOfAll),
  'first page of days': firstPage(totalOfDays),
  'first page of months': firstPage(totalOfMonths),
  'later page': laterPage,
}

/**
 * Which of them answers a request. A total over a year or two is best had from its days; for a range
 * without an end, the clock only says by which way the same total is come to.
 */
function pageFor({ from, to, page }: Range & { page: number }): keyof typeof pages {
  if (page > 0) return 'later page'
  if (from === undefined && to === undefined) return 'first page'
  const [first, last] = [yearOf(from) ?? 1, yearOf(to) ?? new Date().getUTCFullYear()]
  return last - first <= 1 ? 'first page of days' : 'first page of months'
}

const yearOf = (day: string | undefined) =>
  day === undefined ? undefined : Number(day.slice(0, 4))

interface Range {
  from: string | undefined
  to: string | undefined
}

/** Newest first: by effective day, then by hour with the unknown ones last, then by id (contract 8). */
function inOrder<DB, TB extends keyof DB, Columns>(
  rows: SelectQueryBuilder<DB, TB, Columns>,
  table: TransactionTable,
) {
  return rows
    .orderBy(sql`t.effective_day`, 'desc')
    .orderBy(sql`t.operation_date_hour`, (order) => order.desc().nullsLast())
    .orderBy(sql.ref(`t.${KEYS[table]}`), 'desc')
}

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
