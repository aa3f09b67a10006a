import { type Expression, type RawBuilder, sql } from 'kysely'
import { build, firstOfMonth, parameter } from '../postgres/statements.ts'
import { keyParameter } from './connection.ts'

/*
 * Totals and page starts. They sum the row counts of months, and count the rows of the months that a range cuts in the
 * index of the list. `c` is the connection of queries/connection.ts. Without it, they read nothing.
 */

export const from = parameter<string>(4, 'date')
export const to = parameter<string>(5, 'date')
export const limit = parameter<number>(6, 'bigint')
const offset = parameter<number>(7, 'bigint')

export function totalOfAll(table: string): RawBuilder<string> {
  return sql.ref(`c.${table}s`)
}

/** Total of a short range: counts its rows. */
export function totalOfRows(table: string): RawBuilder<string> {
  const range = sql`d.effective_day >= ${from} and d.effective_day <= ${to}`
  return sql`case when c.id is not null then ${countRows(table, range)} end`
}

/** Total of a range of any length: the rows of all its months, minus the rows outside of the range. */
export function totalOfMonths(table: string): RawBuilder<string> {
  const before = sql`d.effective_day >= ${firstOfMonth(from)} and d.effective_day < ${from}`
  const months = monthsOfRange(table).select(sql`coalesce(sum(m.row_count), 0)`.as('rows'))
  return sql`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${totalOfAll(table)}
      when c.id is not null then
        ${months} - ${countRows(table, before)} - ${rowsAfter(table)} end`
}

/**
 * Selects the day of the page's first row, and the number of rows of that day before the page. It finds
 * the month first, then the day. Both count from the end of the range's last month.
 */
export function pageStart(table: string) {
  const months = monthsOfRange(table).select([
    'm.first_day',
    monthAfter(sql`m.first_day`).as('next'),
    sql<number>`${offset} + ${rowsAfter(table)} - ${rowsBefore('m', 'first_day')}`.as('skipped'),
    'm.row_count',
  ])
  const ofMonth = rowsOf(table)
    .where(sql<boolean>`d.effective_day >= month.first_day and d.effective_day < month.next`)
    .select(['d.effective_day', sql<number>`count(*)`.as('row_count')])
    .groupBy('d.effective_day')
    .orderBy('d.effective_day', 'desc')
  const days = build
    .selectFrom(ofMonth.as('d'))
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

function rowsBefore(alias: string, period: string): RawBuilder<number> {
  const [count, order] = [sql.ref(`${alias}.row_count`), sql.ref(`${alias}.${period}`)]
  return sql`(sum(${count}) over (order by ${order} desc rows unbounded preceding) - ${count})`
}

/** Number of rows in the range's last month after the range. */
function rowsAfter(table: string) {
  return countRows(
    table,
    sql`d.effective_day > ${to} and d.effective_day < ${monthAfter(firstOfMonth(to))}`,
  )
}

/** The order leaves PostgreSQL one index, also when it plans the statement on an empty table. */
function countRows(table: string, range: RawBuilder<unknown>) {
  const rows = rowsOf(table)
    .where(sql<boolean>`${range}`)
    .select('d.effective_day')
    .orderBy('d.effective_day', 'desc')
  return build.selectFrom(rows.as('rows')).select(sql<number>`count(*)`.as('rows'))
}

// All paged lists have the columns of these conditions, so the type of one fits.
function rowsOf(table: string) {
  return build
    .selectFrom(`${table} as d` as 'portfolio_transaction as d')
    .where(sql<boolean>`d.connection_id = ${keyParameter} and c.id is not null`)
}

function monthsOfRange(table: string) {
  return build
    .selectFrom(`${table}_month as m` as 'portfolio_transaction_month as m')
    .where(sql<boolean>`
      m.connection_id = ${keyParameter} and c.id is not null
      and m.first_day >= ${firstOfMonth(from)} and m.first_day <= ${to}`)
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
}
