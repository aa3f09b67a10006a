import { type RawBuilder, sql } from 'kysely'
import { chunksOf } from '../json/response-body.ts'
import { type RowWriter, rowWriters } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { firstOfMonth, parameter } from '../postgres/statements.ts'
import { columnOf } from '../schemas/fields.ts'
import { EXPORTS, type ListDefinition } from '../schemas/list.ts'
import { changeFeed } from './changes.ts'
import { connectionOfApp, keyParameter, lookupColumns, totalOfAll } from './connection.ts'
import {
  type ListReader,
  type ListRequest,
  type ReadResponse,
  type Rows,
  readRows,
  responseOf,
  responseQuery,
} from './read.ts'

const from = parameter<string>(4, 'date')
const to = parameter<string>(5, 'date')
const limit = parameter<number>(6, 'bigint')
const offset = parameter<number>(7, 'bigint')

/** Reads pages of a list, its changes and its exports. A page has rows, total and version of one snapshot. */
export function pagedList(list: ListDefinition): ListReader {
  const writers = rowWriters(list.item)
  const queries = pageQueries(list)
  const feed = changeFeed(list, writers)
  return {
    queries: { ...queries, changes: feed.query },
    read: async (db, request) => {
      const { format, since, limit, page } = request
      if (since !== undefined) return feed.read(db, { ...request, since })
      const writer = writers[format]
      if (EXPORTS.has(format)) return exportRows(db, queries, writer, request)
      const found = await readPage(db, queries, request)
      const closing = `],"limit":${limit},"page":${page},"totalItems":${found.lookup.totalItems}}`
      return responseOf(found, request, writer, { opening: '{"items":[', closing })
    },
  }
}

type PageQueries = ReturnType<typeof pageQueries>

/** Compiles one statement per type of page: setting up an unused plan node costs as much as running it. */
function pageQueries(list: ListDefinition) {
  const { table, id } = list
  // By effective day, then by hour (null last), then by id (contract 8).
  const newestFirst = sql`
    order by t.effective_day desc, t.operation_date_hour desc nulls last,
      ${sql.ref(`t.${columnOf(id)}`)} desc`
  const firstPage = (name: string, purpose: string, total: RawBuilder<string>) =>
    responseQuery({
      ...{ name: `${table} ${name}`, purpose, list },
      lookup: (method) => connectionOfApp(method).select(lookupColumns(total)),
      rows: sql`
        t.effective_day >= ${from} and t.effective_day <= ${to} ${newestFirst} limit ${limit}`,
    })
  return {
    'first page': firstPage('first page', 'Reads the first page of all rows.', totalOfAll(table)),
    'first page of days': firstPage(
      'first page of days',
      'Reads the first page of at most two months.',
      totalOfRows(table),
    ),
    'first page of months': firstPage(
      'first page of months',
      'Reads the first page of a longer range.',
      totalOfMonths(table),
    ),
    'later page': responseQuery({
      name: `${table} later page`,
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
      rows: sql`
        t.effective_day >= ${from} and t.effective_day <= lookup.newest_day
        ${newestFirst} limit ${limit} offset lookup.skipped`,
    }),
  }
}

function readPage(db: Database, queries: PageQueries, request: ListRequest) {
  const { from, to, limit, page } = request
  const values = [from ?? '-infinity', to ?? 'infinity', String(limit)]
  if (page > 0) return readRows(db, queries['later page'], request, [...values, `${limit * page}`])
  if (from === undefined && to === undefined)
    return readRows(db, queries['first page'], request, values)
  // A total over up to two calendar months counts its rows: one plan node less for the daily sync. The current month
  // only selects the faster plan of an open range.
  const [first, last] = [monthOf(from ?? '0001-01'), monthOf(to ?? new Date().toISOString())]
  const range = last - first <= 1 ? 'first page of days' : 'first page of months'
  return readRows(db, queries[range], request, values)
}

const monthOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))

/** Rows of a page of an export. Above 1,000 rows, it is one of the large reads. */
export const EXPORT_PAGE = 2_000

/** Reads the first page, then streams all of its data version. No transaction is open between two reads. */
async function exportRows(
  db: Database,
  queries: PageQueries,
  writer: RowWriter,
  request: ListRequest,
): Promise<ReadResponse> {
  const { reader } = request
  const first = await readPage(db, queries, request)
  const { lookup, rows } = first
  const frame = { opening: writer.header, closing: '' }
  if (rows === undefined || request.knownVersions.includes('*'))
    return responseOf(first, request, writer, frame)
  const { version, totalItems } = lookup
  async function* pages(rows: Rows) {
    let left = totalItems - rows.count
    yield rows
    for (let page = 1; left > 0; page += 1) {
      reader.restartTime()
      const next = { ...request, version, knownVersions: [], page }
      const { rows: more } = await readPage(db, queries, next)
      if (!more?.count) throw new Error('an export has fewer rows than its total')
      left -= more.count
      yield more
    }
  }
  return { lookup, items: totalItems, body: chunksOf(pages(rows), writer, frame, reader.memory) }
}

// Totals and page starts sum the row counts of months, and count the rows of months that the range cuts.

/** Total of a short range: counts its rows. */
function totalOfRows(table: string): RawBuilder<string> {
  const range = sql`d.effective_day >= ${from} and d.effective_day <= ${to}`
  return sql`case when c.id is not null then ${countRows(table, range)} end`
}

/** Total of a range of any length: the rows of all its months, minus the rows outside of the range. */
function totalOfMonths(table: string): RawBuilder<string> {
  const before = sql`d.effective_day >= ${firstOfMonth(from)} and d.effective_day < ${from}`
  return sql`
    case when ${from} = '-infinity' and ${to} = 'infinity' then ${totalOfAll(table)}
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
