import { type Expression, type RawBuilder, sql } from 'kysely'
import { build, parameter } from '../postgres/statements.ts'
import { connectionKeyParameter } from './connection.ts'

/*
 * What the books of migration 0003 say: totals, and where in a list a page starts, as sums over months
 * and days, not over rows. All of it is about the connection `c` of queries/connection.ts.
 */

/** The two tables whose rows are listed by day, and in pages. */
export type TransactionTable = 'portfolio_transaction' | 'account_transaction'

// $1 to $3 are the caller and the connection.
export const from = parameter<string>(4, 'date')
export const to = parameter<string>(5, 'date')
export const length = parameter<number>(6, 'bigint')
const offset = parameter<number>(7, 'bigint')

/** All rows that a connection has: its own row knows. */
export function totalOfAll(table: TransactionTable): RawBuilder<string> {
  return sql.ref(`c.${table}s`)
}

/** The rows of a range of days, by the days. */
export function totalOfDays(table: TransactionTable): RawBuilder<string> {
  const range = sql`d.effective_day >= ${from} and d.effective_day <= ${to}`
  return sql`case when c.id is not null then ${rowsOfDays(table, range)} end`
}

/**
 * The same, for a range of any length: the rows of all months that it touches, but for the days of the
 * first month before it and those of the last one behind it.
 */
export function totalOfMonths(table: TransactionTable): RawBuilder<string> {
  const before = sql`d.effective_day >= ${firstOfMonth(from)} and d.effective_day < ${from}`
  const months = monthsOfRange(table).select(sql`coalesce(sum(m.row_count), 0)`.as('rows'))
  return sql`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${totalOfAll(table)}
      when c.id is not null then
        ${months} - ${rowsOfDays(table, before)} - ${rowsBehind(table)} end`
}

/**
 * The day that holds the row at the offset, and how many rows of that day the page leaves out: first the
 * month is looked up, then the day within it. Both count from the end of the range's last month.
 */
export function pageStart(table: TransactionTable) {
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
    .where(sql<boolean>`d.connection_id = ${connectionKeyParameter} and c.id is not null`)
}

function monthsOfRange(table: TransactionTable) {
  return build
    .selectFrom(`${table}_month as m` as 'portfolio_transaction_month as m')
    .where(sql<boolean>`
      m.connection_id = ${connectionKeyParameter} and c.id is not null
      and m.first_day >= ${firstOfMonth(from)} and m.first_day <= ${to}`)
}

/** Of dates alone, which no time zone can shift; the infinities have no month, and stay as they are. */
function firstOfMonth(day: RawBuilder<string>): RawBuilder<string> {
  // Not coalesce(): row-level security takes it for leaky, and no index would be used.
  return sql`case when isfinite(${day}) then ${day} - (extract(day from ${day})::integer - 1) else ${day} end`
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
}
