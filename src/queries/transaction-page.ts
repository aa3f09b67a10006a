import { type Expression, type SelectQueryBuilder, sql } from 'kysely'
import { build, parameter } from '../database/builder.ts'
import type { CallerKind } from './calling-app.ts'
import { connectionOfApp } from './connection.ts'
import { type HeadColumns, headColumns } from './head.ts'

/** The two tables whose rows are listed by day, and in pages. */
export type TransactionTable = 'portfolio_transaction' | 'account_transaction'

const KEYS = { portfolio_transaction: 'transaction_id', account_transaction: 'movement_id' }

// Behind $1, the caller, and $2, the connection.
const from = parameter<string>(3, 'date')
const to = parameter<string>(4, 'date')
const length = parameter<number>(5, 'bigint')
const offset = parameter<number>(6, 'bigint')

/**
 * The two parts of a statement for one page of a list: its head, and its rows out of a table's rows `t`.
 * Totals and places come from the books of migration 0003, so that they are sums over days, not over
 * rows.
 */
interface Page {
  head: (kind: CallerKind, table: TransactionTable) => Expression<HeadColumns>
  rows: <DB, TB extends keyof DB, Columns>(
    rows: SelectQueryBuilder<DB, TB, Columns>,
    table: TransactionTable,
  ) => Expression<Columns>
}

/** The page that nearly every request asks for; nothing stands before it. */
export const firstPage: Page = {
  head: (kind, table) => connectionOfApp(kind).select(headColumns(totalItems(table))),
  rows: (rows, table) =>
    inOrder(rows, table)
      .where(sql<boolean>`
        t.connection_id = head.connection_id
        and t.effective_day >= ${from} and t.effective_day <= ${to}`)
      .limit(length),
}

/** Any other page: the day in which it starts is looked up, so that its depth costs next to nothing. */
export const laterPage: Page = {
  head: (kind, table) =>
    connectionOfApp(kind)
      .leftJoinLateral(pageStart(table).as('start'), (join) => join.onTrue())
      .select([
        ...headColumns(totalItems(table)),
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

/** The connection's own row counts all of them; a range of days is summed. */
function totalItems(table: TransactionTable) {
  const sum = daysInRange(table).select(sql`coalesce(sum(d.row_count), 0)`.as('rows'))
  return sql<string>`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${sql.ref(`c.${table}s`)}
      when c.id is not null then ${sum} end`
}

/** The day that holds the row at the offset, and how many rows of that day the page leaves out. */
function pageStart(table: TransactionTable) {
  const days = daysInRange(table)
    .select(['d.effective_day', 'd.row_count'])
    .select(
      sql<number>`sum(d.row_count) over (order by d.effective_day desc rows unbounded preceding)`.as(
        'up_to',
      ),
    )
  return build
    .selectFrom(days.as('days'))
    .select('days.effective_day')
    .select(sql<number>`${offset} - (days.up_to - days.row_count)`.as('skipped'))
    .where(sql<boolean>`days.up_to > ${offset}`)
    .orderBy('days.effective_day', 'desc')
    .limit(sql.lit(1))
}

function daysInRange(table: TransactionTable) {
  // The two books are alike, so the type of one stands for both.
  return build
    .selectFrom(`${table}_day as d` as 'portfolio_transaction_day as d')
    .where(sql<boolean>`
      d.connection_id = c.id and d.effective_day >= ${from} and d.effective_day <= ${to}`)
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
