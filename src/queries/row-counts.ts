import { type RawBuilder, sql } from 'kysely'
import { firstOfMonth, parameter } from '../postgres/statements.ts'
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
  return sql`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${totalOfAll(table)}
      when c.id is not null then
        (select coalesce(sum(m.row_count), 0) as rows from ${monthsOfRange(table)})
        - ${countRows(table, before)} - ${rowsAfter(table)} end`
}

/**
 * Selects the day of the page's first row, and the number of rows of that day before the page. It finds
 * the month first, then the day. Both count from the end of the range's last month.
 */
export function pageStart(table: string) {
  return sql<{ effective_day: string; skipped: number }>`(
    select day.effective_day, day.skipped from (
      select * from (
        select m.first_day, ${monthAfter(sql`m.first_day`)} as next, m.row_count,
          ${offset} + ${rowsAfter(table)} - ${rowsBefore('m', 'first_day')} as skipped
        from ${monthsOfRange(table)}
      ) as months where skipped < row_count order by first_day desc limit 1
    ) as month cross join lateral (
      select * from (
        select d.effective_day, d.row_count, month.skipped - ${rowsBefore('d', 'effective_day')} as skipped
        from (
          select d.effective_day, count(*) as row_count from ${rowsOf(table)}
            and d.effective_day >= month.first_day and d.effective_day < month.next
          group by d.effective_day order by d.effective_day desc
        ) as d
      ) as days where skipped < row_count order by effective_day desc limit 1
    ) as day)`
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
  return sql`(
    select count(*) as rows from (
      select d.effective_day from ${rowsOf(table)} and ${range} order by d.effective_day desc
    ) as rows)`
}

function rowsOf(table: string) {
  return sql`${sql.table(table)} as d where d.connection_id = ${keyParameter} and c.id is not null`
}

function monthsOfRange(table: string) {
  return sql`
    ${sql.table(`${table}_month`)} as m
    where m.connection_id = ${keyParameter} and c.id is not null
      and m.first_day >= ${firstOfMonth(from)} and m.first_day <= ${to}`
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
}
