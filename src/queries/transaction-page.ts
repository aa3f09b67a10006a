import { type Expression, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
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
 * Totals and places come from the books of migration 0003, so that they are sums over months and
 * days, not over rows.
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

/**
 * The connection's own row counts all of them. In a range of days there are those of all months that it
 * touches, but for the days of the first month before it and those of the last one behind it.
 */
function totalItems(table: TransactionTable) {
  const before = sql`d.effective_day >= ${firstOfMonth(from)} and d.effective_day < ${from}`
  const months = monthsOfRange(table).select(sql`coalesce(sum(m.row_count), 0)`.as('rows'))
  return sql<string>`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${sql.ref(`c.${table}s`)}
      when c.id is not null then
        ${months} - ${rowsOfDays(table, before)} - ${rowsBehind(table)} end`
}

/**
 * The day that holds the row at the offset, and how many rows of that day the page leaves out: first the
 * month is looked up, then the day within it. Both count from the end of the range's last month.
 */
function pageStart(table: TransactionTable) {
  const months = monthsOfRange(table).select([
    'm.first_day',
    monthAfter(sql`m.first_day`).as('next'),
    sql<number>`${offset} + ${rowsBehind(table)} - ${above('m', 'first_day')}`.as('skipped'),
    'm.row_count',
  ])
  const days = daysOf(table)
    .where(sql<boolean>`d.effective_day >= month.first_day and d.effective_day < month.next`)
    .select([
      'd.effective_day',
      sql<number>`month.skipped - ${above('d', 'effective_day')}`.as('skipped'),
      'd.row_count',
    ])
  const [month, day] = [holder(months, 'first_day'), holder(days, 'effective_day')]
  return build
    .selectFrom(month.as('month'))
    .innerJoinLateral(day.as('day'), (join) => join.onTrue())
    .select(['day.effective_day', 'day.skipped'])
}

/** The first of these periods, in the order of the list, that has a row behind those to be skipped. */
function holder<Columns extends { skipped: number; row_count: number }>(
  periods: Expression<Columns>,
  period: keyof Columns & string,
) {
  return build
    .selectFrom(sql<Columns>`${periods}`.as('periods'))
    .selectAll()
    .where(sql<boolean>`skipped < row_count`)
    .orderBy(sql.ref(period), 'desc')
    .limit(sql.lit(1))
}

/** The rows of all periods that come before a period in the list. */
function above(book: string, period: string): RawBuilder<number> {
  const [count, order] = [sql.ref(`${book}.row_count`), sql.ref(`${book}.${period}`)]
  return sql`(sum(${count}) over (order by ${order} desc rows unbounded preceding) - ${count})`
}

/** The rows of the range's last month that are of days behind the range. */
function rowsBehind(table: TransactionTable) {
  return rowsOfDays(
    table,
    sql`d.effective_day > ${to} and d.effective_day < ${monthAfter(firstOfMonth(to))}`,
  )
}

function rowsOfDays(table: TransactionTable, range: RawBuilder<unknown>) {
  return daysOf(table)
    .where(sql<boolean>`${range}`)
    .select(sql<number>`coalesce(sum(d.row_count), 0)`.as('rows'))
}

// The books of the two tables are alike, so the types of one stand for both.
function daysOf(table: TransactionTable) {
  return build
    .selectFrom(`${table}_day as d` as 'portfolio_transaction_day as d')
    .where(sql<boolean>`d.connection_id = c.id`)
}

function monthsOfRange(table: TransactionTable) {
  return build
    .selectFrom(`${table}_month as m` as 'portfolio_transaction_month as m')
    .where(sql<boolean>`
      m.connection_id = c.id
      and m.first_day >= ${firstOfMonth(from)} and m.first_day <= ${to}`)
}

/** Of dates alone, which no time zone can shift; the infinities have no month, and stay as they are. */
function firstOfMonth(day: RawBuilder<string>): RawBuilder<string> {
  // Not coalesce(), which row-level security takes for leaky, and so would not let an index use.
  return sql`case when isfinite(${day}) then ${day} - (extract(day from ${day})::integer - 1) else ${day} end`
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
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
