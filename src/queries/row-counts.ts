import { type Expression, type RawBuilder, sql } from 'kysely'
import { build, firstOfMonth, parameter } from '../postgres/statements.ts'
import { connectionKey } from './connection.ts'

/*
 * Totals and page starts from the row counts of migration 0003: sums over months and days, not over rows.
 * `c` is the connection of queries/connection.ts. Nothing is counted before `c` is found.
 */

/** The tables of the two paged lists. */
export type TransactionTable = 'portfolio_transaction' | 'account_transaction'

// $1 to $3 are the caller and the connection.
export const from = parameter<string>(4, 'date')
export const to = parameter<string>(5, 'date')
export const limit = parameter<number>(6, 'bigint')
const offset = parameter<number>(7, 'bigint')

/** Total of a connection, stored in its own row. */
export function totalOfAll(table: TransactionTable): RawBuilder<string> {
  return sql.ref(`c.${table}s`)
}

/** Total of a range, summed by day. */
export function totalOfDays(table: TransactionTable): RawBuilder<string> {
  const range = sql`d.effective_day >= ${from} and d.effective_day <= ${to}`
  return sql`case when c.id is not null then ${rowsOfDays(table, range)} end`
}

/**
 * Total of a range of any length: the rows of all months that it touches, minus the days of the first
 * month before it and the days of the last month after it.
 */
export function totalOfMonths(table: TransactionTable): RawBuilder<string> {
  const before = sql`d.effective_day >= ${firstOfMonth(from)} and d.effective_day < ${from}`
  const months = monthsOfRange(table).select(sql`coalesce(sum(m.row_count), 0)`.as('rows'))
  return sql`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${totalOfAll(table)}
      when c.id is not null then
        ${months} - ${rowsOfDays(table, before)} - ${rowsAfter(table)} end`
}

/**
 * The day that holds the row at the offset, and the rows of that day before the page: the month is looked
 * up first, then the day in it. Both count from the end of the range's last month.
 */
export function pageStart(table: TransactionTable) {
  const months = monthsOfRange(table).select([
    'm.first_day',
    monthAfter(sql`m.first_day`).as('next'),
    sql<number>`${offset} + ${rowsAfter(table)} - ${rowsBefore('m', 'first_day')}`.as('skipped'),
    'm.row_count',
  ])
  const days = daysOf(table)
    .where(sql<boolean>`d.effective_day >= month.first_day and d.effective_day < month.next`)
    .select([
      'd.effective_day',
      sql<number>`month.skipped - ${rowsBefore('d', 'effective_day')}`.as('skipped'),
      'd.row_count',
    ])
  const [month, day] = [periodOfRow(months, 'first_day'), periodOfRow(days, 'effective_day')]
  return build
    .selectFrom(month.as('month'))
    .innerJoinLateral(day.as('day'), (join) => join.onTrue())
    .select(['day.effective_day', 'day.skipped'])
}

/** The newest of these periods that holds a row after the skipped ones. */
function periodOfRow<Columns extends { skipped: number; row_count: number }>(
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

/** Rows of all newer periods. */
function rowsBefore(alias: string, period: string): RawBuilder<number> {
  const [count, order] = [sql.ref(`${alias}.row_count`), sql.ref(`${alias}.${period}`)]
  return sql`(sum(${count}) over (order by ${order} desc rows unbounded preceding) - ${count})`
}

/** Rows of the range's last month on days after the range. */
function rowsAfter(table: TransactionTable) {
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

// The row counts of both tables have the same columns, so the types of one serve for both.
function daysOf(table: TransactionTable) {
  return build
    .selectFrom(`${table}_day as d` as 'portfolio_transaction_day as d')
    .where(sql<boolean>`d.connection_id = ${connectionKey} and c.id is not null`)
}

function monthsOfRange(table: TransactionTable) {
  return build
    .selectFrom(`${table}_month as m` as 'portfolio_transaction_month as m')
    .where(sql<boolean>`
      m.connection_id = ${connectionKey} and c.id is not null
      and m.first_day >= ${firstOfMonth(from)} and m.first_day <= ${to}`)
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
}
