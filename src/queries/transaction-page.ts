import { type Expression, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { CallerKind } from './calling-app.ts'
import { connectionOfApp } from './connection.ts'
import { type HeadColumns, headColumns } from './head.ts'
import {
  from,
  length,
  pageStart,
  type TransactionTable,
  to,
  totalOfAll,
  totalOfDays,
  totalOfMonths,
} from './transaction-books.ts'

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
        t.connection_id = head.connection_id
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
        t.connection_id = head.connection_id
        and t.effective_day >= ${from} and t.effective_day <= head.newest_day`)
      .limit(length)
      .offset(sql<number>`head.skipped`),
}

/**
 * One statement for each, so that a request takes no step that it does not need: to make a step ready
 * costs the database as much as to take it.
 */
export const pages = {
  'first page': firstPage(totalOfAll),
  'first page of days': firstPage(totalOfDays),
  'first page of months': firstPage(totalOfMonths),
  'later page': laterPage,
}

/**
 * Which of them answers a request. A total over a year or two is best had from its days; for a range
 * without an end, the clock only says by which way the same total is come to.
 */
export function pageFor({ from, to, page }: Range & { page: number }): keyof typeof pages {
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
