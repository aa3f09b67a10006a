import { type RawBuilder, sql } from 'kysely'
import { chunksOf } from '../json/response-body.ts'
import { type RowWriter, rowWriters } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { build, firstOfMonth } from '../postgres/statements.ts'
import { columnOf } from '../schemas/fields.ts'
import { EXPORTS, type Format, type ListDefinition, MEDIA_TYPES } from '../schemas/list.ts'
import { changeFeed } from './changes.ts'
import { connectionOfApp, lookupColumns, totalOfAll } from './connection.ts'
import { p } from './parameters.ts'
import {
  type ListReader,
  type ListRequest,
  type ReadResponse,
  type Rows,
  readRows,
  responseOf,
} from './read.ts'
import { responseQuery } from './response.ts'

/** Reads pages of a list, its changes and its exports. A page has rows, total and version of one snapshot. */
export function pagedList(list: ListDefinition): ListReader {
  const writers = rowWriters(list.item)
  const queries = pageQueries(list)
  const feed = changeFeed(list, writers)
  return {
    queries: { ...queries, changes: feed.query },
    formats: FORMATS,
    limitOf: (format, pageSize, method) => {
      if (!EXPORTS.has(format)) return pageSize
      // HEAD of an export needs its total only.
      return method === 'HEAD' ? 0 : EXPORT_PAGE
    },
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
  // Both lists of transactions have the columns that these queries use.
  const table = list.table as 'portfolio_transaction'
  // By effective day, then by hour (null last), then by id (contract 8).
  const newestFirst = build
    .selectFrom(`${table} as t`)
    .where('t.effective_day', '>=', p.from)
    .orderBy('t.effective_day', 'desc')
    .orderBy('t.operation_date_hour', (hour) => hour.desc().nullsLast())
    .orderBy(sql.ref(`t.${columnOf(list.id)}`), 'desc')
    .limit(p.limit)
  const firstPage = newestFirst.where('t.effective_day', '<=', p.to)
  return {
    all: responseQuery({
      title: `${table} first page`,
      purpose: 'Reads the first page of all rows.',
      list,
      lookup: (method) => connectionOfApp(method).select(lookupColumns(totalOfAll(table))),
      rows: firstPage,
    }),
    days: responseQuery({
      title: `${table} first page of days`,
      purpose: 'Reads the first page of at most two months.',
      list,
      lookup: (method) => connectionOfApp(method).select(lookupColumns(totalOfRows(table))),
      rows: firstPage,
    }),
    months: responseQuery({
      title: `${table} first page of months`,
      purpose: 'Reads the first page of a longer range.',
      list,
      lookup: (method) => connectionOfApp(method).select(lookupColumns(totalOfMonths(table))),
      rows: firstPage,
    }),
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
      rows: newestFirst
        .where('t.effective_day', '<=', sql.ref<string>('lookup.newest_day'))
        .offset(sql.ref<number>('lookup.skipped')),
    }),
  }
}

function readPage(db: Database, queries: PageQueries, request: ListRequest) {
  const { from, to, limit, page } = request
  const values = { from: from ?? '-infinity', to: to ?? 'infinity', limit }
  if (page > 0) return readRows(db, queries.later, request, { ...values, offset: limit * page })
  if (from === undefined && to === undefined) return readRows(db, queries.all, request, values)
  // A total over up to two calendar months counts its rows: one plan node less for the daily sync. The current month
  // only selects the faster plan of an open range.
  const [first, last] = [monthOf(from ?? '0001-01'), monthOf(to ?? new Date().toISOString())]
  const query = last - first <= 1 ? queries.days : queries.months
  return readRows(db, query, request, values)
}

const monthOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))

const FORMATS = Object.keys(MEDIA_TYPES) as Format[]

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
      reader.continue()
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
  const range = sql`d.effective_day >= ${p.from} and d.effective_day <= ${p.to}`
  return sql`case when c.id is not null then ${countRows(table, range)} end`
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
  const [count, order] = [sql.ref(`${alias}.row_count`), sql.ref(`${alias}.${period}`)]
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
function countRows(table: string, range: RawBuilder<unknown>) {
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
