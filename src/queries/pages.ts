import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build, type CompiledStatement, compile, firstOfMonth } from '../postgres/statements.ts'
import { columnOf } from '../schemas/fields.ts'
import type { List } from '../schemas/list.ts'
import { problem } from '../schemas/problem.ts'
import { type Filters, filtersOf, hasFilter } from '../schemas/request.ts'
import { changesQuery, readChanges } from './changes.ts'
import { connectionOfApp, lookupColumns, totalOfAll } from './connection.ts'
import { p } from './parameters.ts'
import {
  type Found,
  type FoundList,
  type ListQueries,
  type ListRequest,
  type Rows,
  readPrimary,
  readRows,
} from './read.ts'
import { lookupQuery, type Order, ofLookup, type PagedList, responseQuery } from './response.ts'

/** Reads pages of a list, its changes and its exports. A page has rows, total and version of one snapshot. */
export function pagedList(list: PagedList): ListQueries {
  const queries = { ...pageQueries(list), changes: changesQuery(list) }
  return {
    statements: queries,
    read: (db, request, known) => {
      const { since } = request
      if (since !== undefined)
        return readChanges(db, list, queries.changes, { ...request, since }, known)
      if (request.purpose === 'export') return exportRows(db, list, queries, request, known)
      request.reader.expectRows(request.limit, request.limit * request.page)
      return readPage(db, list, queries, request, known)
    },
  }
}

type PageQueries = ReturnType<typeof pageQueries>

/**
 * Compiles one statement per type of page: setting up an unused plan node costs as much as running it.
 * @throws Error if one of them, or a part of it, does not use a filter: it would answer with all rows
 */
function pageQueries(list: PagedList) {
  const queries = compilePages(list)
  for (const statements of Object.values(queries)) {
    requireFilters(statements.tokenHash)
    requireFilters(statements.clientId)
  }
  // A statement may use a filter in one of its parts alone: the total would then be that of other rows.
  const { table } = list
  const parts = { days: totalOfDays(table), months: totalOfMonths(table), start: pageStart(table) }
  for (const [name, part] of Object.entries(parts))
    requireFilters(compile(`${table} ${name}`, '', sql`select ${part}`))
  return queries
}

/** @throws Error if a statement does not use one of the filters */
export function requireFilters({
  title,
  parameters,
}: Pick<CompiledStatement, 'title' | 'parameters'>): void {
  const used = new Set(parameters.map(({ name }) => name))
  for (const filter of Object.keys(filtersOf({}))) {
    if (!used.has(filter))
      throw new Error(`the statement ${title} does not use the filter ${filter}`)
  }
}

function compilePages(list: PagedList) {
  const { table } = list
  // Newest first. The id makes the order total: without it, a row could be on two pages, or on none.
  const order: Order = {
    effective_day: 'desc',
    operation_date_hour: 'desc nulls last',
    [columnOf(list.id)]: 'desc',
  }
  const sinceFrom = build
    .selectFrom(build.dynamic.table(table).as('t'))
    .where('t.effective_day', '>=', p.from)
    .limit(p.limit)
  const firstPage = (title: string, purpose: string, totalItems: RawBuilder<string>) =>
    responseQuery({
      title: `${table} ${title}`,
      purpose,
      list,
      lookup: (method) => connectionOfApp(method).select(lookupColumns(totalItems)),
      rows: sinceFrom.where('t.effective_day', '<=', p.to),
      order,
    })
  return {
    first: firstPage(
      'first page',
      'Reads the first page of a range, and the number of all rows.',
      totalOfAll(table),
    ),
    days: firstPage(
      'first page of days',
      'Reads the first page of a short range, and counts its rows.',
      totalOfDays(table),
    ),
    months: firstPage(
      'first page of months',
      'Reads the first page of a range, and the number of its rows.',
      totalOfMonths(table),
    ),
    later: responseQuery({
      title: `${table} later page`,
      purpose: 'Reads a later page, from the day of its first row: it skips only rows of that day.',
      list,
      lookup: (method) =>
        connectionOfApp(method)
          .leftJoinLateral(pageStart(table).as('start'), (join) => join.onTrue())
          .select([
            ...lookupColumns(totalOfMonths(table)),
            'start.effective_day as newest_day',
            'start.skipped',
          ]),
      // After the last page, newest_day is null, so no row matches.
      rows: sinceFrom
        .where('t.effective_day', '<=', ofLookup(sql.ref<string>('newest_day')))
        .offset(ofLookup(sql.ref<number>('skipped'))),
      order,
    }),
    total: lookupQuery({
      title: `${table} total`,
      purpose: 'Reads the version, and the number of rows of a range.',
      totalItems: totalOfMonths(table),
    }),
  }
}

/**
 * Up to this limit, most first pages of a range are full. So the statement of the page also counts: a second one would
 * cost more than the counts of pages that are not full.
 */
const SMALL_LIMIT = 100

/** Reads a page with its total. A first page that is not full needs no count: its rows are the total. */
async function readPage(
  db: Database,
  list: List,
  queries: PageQueries,
  request: ListRequest,
  known?: Found,
): Promise<Found> {
  const { table } = list
  const { from, to, limit, page } = request
  // The type names every filter, so that none is forgotten.
  const filters: Record<keyof Filters, string> = { from: from ?? '-infinity', to: to ?? 'infinity' }
  const values = { ...filters, limit, offset: limit * page }
  if (page > 0) return readRows(db, table, queries.later, request, values, known)
  const isRange = hasFilter(request)
  if (isRange && limit <= SMALL_LIMIT) {
    const query = isShort(from, to) ? queries.days : queries.months
    return readRows(db, table, query, request, values, known)
  }
  const { lookup, rows } = await readRows(db, table, queries.first, request, values, known)
  if (!isRange) return { lookup, rows }
  if (rows.count < limit) return { lookup: { ...lookup, totalItems: rows.count }, rows }
  const counted = await readPrimary(db, queries.total, request, values)
  if (counted.lookup.version === lookup.version) return { lookup: counted.lookup, rows }
  // The data has changed in between.
  rows.discard()
  return readRows(db, table, queries.months, request, values)
}

/** Returns true for a range of at most two months. An open one ends today: this only selects the faster statement. */
function isShort(from = '0001-01-01', to = new Date().toISOString()): boolean {
  return monthOf(to) - monthOf(from) <= 1
}

/** Numbers the month of a day such as 2026-11-26. */
const monthOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))

/** Rows of a page of an export. Above 1,000 rows, it is one of the large reads. */
export const EXPORT_PAGE = 2_000

/** Reads the first page, then the others while they are sent. No transaction is open between two reads. */
async function exportRows(
  db: Database,
  list: List,
  queries: PageQueries,
  request: ListRequest,
  known?: Found,
): Promise<FoundList> {
  const limit = request.isHead ? 0 : EXPORT_PAGE
  request.reader.expectRows(limit)
  const first = await readPage(db, list, queries, { ...request, limit }, known)
  const { version, totalItems } = first.lookup
  const firstCount = first.rows.count
  async function* laterRows(): AsyncGenerator<Rows> {
    let left = totalItems - firstCount
    for (let page = 1; left > 0; page += 1) {
      request.reader.continue()
      const { lookup, rows } = await readPage(db, list, queries, { ...request, limit, page })
      if (lookup.version !== version) throw problem('data_changed')
      if (rows.count === 0) throw new Error('an export has fewer rows than its total')
      left -= rows.count
      yield rows
    }
  }
  return { ...first, laterRows: laterRows() }
}

// Totals and page starts sum the row counts of months, and count the rows of months that the range cuts.

/** Total of a short range: the number of its rows. */
function totalOfDays(table: string): RawBuilder<string> {
  return countRows(table, sql`d.effective_day >= ${p.from} and d.effective_day <= ${p.to}`)
}

/** Total of a range of any length: the rows of all its months, minus the rows outside of the range. */
function totalOfMonths(table: string): RawBuilder<string> {
  const before = sql`d.effective_day >= ${firstOfMonth(p.from)} and d.effective_day < ${p.from}`
  return sql`
    case when ${p.from} = '-infinity' and ${p.to} = 'infinity' then ${totalOfAll(table)}
      when c.id is not null then
        (select coalesce(sum(m.row_count), 0) as rows from ${monthsOfRange(table)})
        - ${countRows(table, before)} - ${rowsAfter(table)} end`
}

/** Selects the day of the page's first row, and the rows of that day before it: first the month, then the day. */
function pageStart(table: string) {
  return sql<{ effective_day: string; skipped: number }>`(
    select day.effective_day, day.skipped from (
      select * from (
        select m.first_day, ${monthAfter(sql`m.first_day`)} as next, m.row_count,
          ${p.offset} + ${rowsAfter(table)} - ${rowsBefore('m', 'first_day')} as skipped
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
  const count = sql.ref(`${alias}.row_count`)
  const order = sql.ref(`${alias}.${period}`)
  return sql`(sum(${count}) over (order by ${order} desc rows unbounded preceding) - ${count})`
}

/** Number of rows in the range's last month after the range. */
function rowsAfter(table: string) {
  return countRows(
    table,
    sql`d.effective_day > ${p.to} and d.effective_day < ${monthAfter(firstOfMonth(p.to))}`,
  )
}

/** The order leaves PostgreSQL one index, also when it plans the statement on an empty table. */
function countRows(table: string, range: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(
    select count(*) as rows from (
      select d.effective_day from ${rowsOf(table)} and ${range} order by d.effective_day desc
    ) as rows)`
}

function rowsOf(table: string) {
  return sql`${sql.table(table)} as d where d.connection_id = ${p.connectionKey} and c.id is not null`
}

function monthsOfRange(table: string) {
  return sql`
    ${sql.table(`${table}_month`)} as m
    where m.connection_id = ${p.connectionKey} and c.id is not null
      and m.first_day >= ${firstOfMonth(p.from)} and m.first_day <= ${p.to}`
}

function monthAfter(firstDay: RawBuilder<unknown>): RawBuilder<string> {
  return sql`(${firstDay} + interval '1 month')::date`
}
