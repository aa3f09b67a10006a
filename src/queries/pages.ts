import { type Expression, type RawBuilder, sql } from 'kysely'
import { bodyOf, chunksOf } from '../json/response-body.ts'
import { type RowWriter, rowWriters } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { columnOf } from '../schemas/fields.ts'
import { EXPORTS, type ListDefinition } from '../schemas/list.ts'
import { changeFeed } from './changes.ts'
import {
  type AuthMethod,
  connectionOfApp,
  type LookupColumns,
  lookupColumns,
} from './connection.ts'
import {
  type ListReader,
  type ListRequest,
  type ReadResponse,
  type Rows,
  readRows,
  responseOf,
  responseQuery,
} from './read.ts'
import { from, limit, pageStart, to, totalOfAll, totalOfMonths, totalOfRows } from './row-counts.ts'

/**
 * Reads a list in pages. A page has its rows, the total and the data version of one snapshot.
 * @returns `read` also reads the changes since a cursor, and exports
 */
export function pagedList(list: ListDefinition): ListReader {
  const writers = rowWriters(list.item)
  const queries = pageQueries(list)
  const feed = changeFeed(list, writers)
  return {
    queries: { ...queries, changes: feed.query },
    read: async (db, request) => {
      const { context, format, since, limit, page } = request
      if (since !== undefined) return feed.read(db, { ...request, since })
      const writer = writers[format]
      if (EXPORTS.has(format)) return exportRows(db, queries, writer, request)
      const found = await readPage(db, queries, request)
      const closing = `],"limit":${limit},"page":${page},"totalItems":${found.lookup.totalItems}}`
      return responseOf(found, request, (rows) =>
        bodyOf(rows, writer, { opening: '{"items":[', closing }, context),
      )
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
  const query = (
    name: string,
    purpose: string,
    lookup: (method: AuthMethod) => Expression<LookupColumns>,
    rows: RawBuilder<unknown>,
  ) => responseQuery({ name: `${table} ${name}`, purpose, list, lookup, rows })
  const firstPage = (name: string, purpose: string, total: RawBuilder<string>) =>
    query(
      name,
      purpose,
      (method) => connectionOfApp(method).select(lookupColumns(total)),
      sql`
        t.effective_day >= ${from} and t.effective_day <= ${to} ${newestFirst} limit ${limit}`,
    )
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
    'later page': query(
      'later page',
      'Reads a later page, from the day of its first row: a deep page is as fast as the first.',
      (method) =>
        connectionOfApp(method)
          .leftJoinLateral(pageStart(table).as('start'), (join) => join.onTrue())
          .select([
            ...lookupColumns(totalOfMonths(table)),
            'start.effective_day as newest_day',
            'start.skipped',
          ]),
      // After the last page, newest_day is null, so no row matches.
      sql`
        t.effective_day >= ${from} and t.effective_day <= lookup.newest_day
        ${newestFirst} limit ${limit} offset lookup.skipped`,
    ),
  }
}

function readPage(db: Database, queries: PageQueries, request: ListRequest) {
  const { from, to, limit, page } = request
  const values = [from ?? '-infinity', to ?? 'infinity', String(limit)]
  const offset = page > 0 ? [String(limit * page)] : []
  return readRows(db, queries[pageFor(request)], request, [...values, ...offset])
}

/**
 * A total over up to two calendar months counts its rows: one plan node less for the daily sync. The current month
 * only selects the faster plan of an open range.
 */
function pageFor({ from, to, page }: ListRequest): keyof PageQueries {
  if (page > 0) return 'later page'
  if (from === undefined && to === undefined) return 'first page'
  const [first, last] = [monthOf(from ?? '0001-01'), monthOf(to ?? new Date().toISOString())]
  return last - first <= 1 ? 'first page of days' : 'first page of months'
}

const monthOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))

/** Rows of a page of an export. Above 1,000 rows, it is one of the large reads. */
export const EXPORT_PAGE = 2_000

/**
 * Reads the first page, then streams all pages. With the data version of the first page, they are parts of one state.
 * No transaction is open between two reads.
 */
async function exportRows(
  db: Database,
  queries: PageQueries,
  writer: RowWriter,
  request: ListRequest,
): Promise<ReadResponse> {
  const { context } = request
  const first = await readPage(db, queries, request)
  const { version, totalItems } = first.lookup
  async function* pages(rows: Rows) {
    let left = totalItems - rows.count
    yield rows
    for (let page = 1; left > 0; page += 1) {
      context.startedAt = performance.now()
      const next = { ...request, version, knownVersions: [], page }
      const { rows: more } = await readPage(db, queries, next)
      if (!more?.count) throw new Error('an export has fewer rows than its total')
      left -= more.count
      yield more
    }
  }
  const frame = { opening: writer.header, closing: '' }
  const response = responseOf(first, request, (rows) =>
    chunksOf(pages(rows), writer, frame, context),
  )
  return response.body ? { ...response, items: totalItems } : response
}
