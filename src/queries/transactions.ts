import { setTimeout as sleep } from 'node:timers/promises'
import type { TObject } from '@sinclair/typebox'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { rowStream } from '../json/response-body.ts'
import { compileRowWriter, csvHeader, csvTemplate, lineTemplate } from '../json/row-writer.ts'
import { Unavailable } from '../limits/errors.ts'
import type { Database } from '../postgres/database.ts'
import { exactDecimals } from '../schemas/fields.ts'
import type { AuthMethod } from './caller.ts'
import { type Cursor, changeFeed } from './change-feed.ts'
import { connectionOfApp, LOOKUP_COLUMNS, type LookupColumns, lookupColumns } from './connection.ts'
import {
  type ConnectionRequest,
  notModified,
  type ReadResponse,
  type ResponseQuery,
  readResponse,
  readRows,
  responseQuery,
} from './read-response.ts'
import {
  from,
  limit,
  pageStart,
  ROW_ID,
  type TransactionTable,
  to,
  totalOfAll,
  totalOfMonths,
  totalOfRows,
} from './row-counts.ts'

export interface ListRequest extends ConnectionRequest {
  from: string | undefined
  to: string | undefined
  since: Cursor | undefined
  limit: number
  page: number
}

/**
 * Compiles the statements of one of the two lists.
 * @returns `list` reads a page or the changes, the total and the data version in one snapshot. `exportRows`
 *   streams all rows. `queries` has the statements by the type of page.
 */
export function transactionList(table: TransactionTable, item: TObject) {
  const compiled = Object.entries(pages).map(([name, page]): [string, ResponseQuery] => {
    const { purpose } = page
    const lookup = (method: AuthMethod) => page.lookup(method, table)
    const rows = page.rows(table)
    return [name, responseQuery({ name: `${table} ${name}`, purpose, table, item, lookup, rows })]
  })
  const feed = changeFeed(table, item)
  const queries = Object.fromEntries([...compiled, ['changes', feed.query]]) as TransactionQueries
  const list = (db: Database, request: ListRequest): Promise<ReadResponse> => {
    const { since, limit: rowLimit, page } = request
    if (since !== undefined) return feed.list(db, { ...request, since })
    const query = queries[pageFor(request)]
    return readResponse(db, query, request, pageValues(request), ({ totalItems }) => ({
      opening: '{"items":[',
      closing: `],"limit":${rowLimit},"page":${page},"totalItems":${totalItems}}`,
    }))
  }
  return { list, exportRows: transactionExport(queries, item), queries }
}

function pageValues({ from, to, limit, page }: ListRequest): string[] {
  const values = [from ?? '-infinity', to ?? 'infinity', String(limit)]
  return page > 0 ? [...values, String(limit * page)] : values
}

type TransactionQueries = Record<keyof typeof pages | 'changes', ResponseQuery>

interface Page {
  purpose: string
  lookup: (method: AuthMethod, table: TransactionTable) => Expression<LookupColumns>
  rows: (table: TransactionTable) => RawBuilder<unknown>
}

type Total = (table: TransactionTable) => RawBuilder<string>

const firstPage = (purpose: string, total: Total): Page => ({
  purpose,
  lookup: (method, table) => connectionOfApp(method).select(lookupColumns(total(table))),
  rows: (table) => sql`
    t.effective_day >= ${from} and t.effective_day <= ${to} ${newestFirst(table)} limit ${limit}`,
})

const laterPage: Page = {
  purpose:
    'Reads a later page, from the day of its first row: a deep page is as fast as the first.',
  lookup: (method, table) =>
    connectionOfApp(method)
      .leftJoinLateral(pageStart(table).as('start'), (join) => join.onTrue())
      .select([
        ...lookupColumns(totalOfMonths(table)),
        'start.effective_day as newest_day',
        'start.skipped',
      ]),
  // After the last page, newest_day is null, so no row matches.
  rows: (table) => sql`
    t.effective_day >= ${from} and t.effective_day <= lookup.newest_day
    ${newestFirst(table)} limit ${limit} offset lookup.skipped`,
}

/** One statement per type of page: setting up an unused plan node costs as much as running it. */
const pages = {
  'first page': firstPage('Reads the first page of all rows.', totalOfAll),
  'first page of days': firstPage('Reads the first page of at most two months.', totalOfRows),
  'first page of months': firstPage('Reads the first page of a longer range.', totalOfMonths),
  'later page': laterPage,
}

/**
 * A total over up to two calendar months counts its rows: one plan node less for the daily sync. The current month
 * only selects the faster plan of an open range.
 */
function pageFor({ from, to, page }: ListRequest): keyof typeof pages {
  if (page > 0) return 'later page'
  if (from === undefined && to === undefined) return 'first page'
  const [first, last] = [monthOf(from ?? '0001-01'), monthOf(to ?? new Date().toISOString())]
  return last - first <= 1 ? 'first page of days' : 'first page of months'
}

const monthOf = (day: string) => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7))

/** Order by effective day, then by hour (null last), then by id (contract 8). */
function newestFirst(table: TransactionTable) {
  return sql`
    order by t.effective_day desc, t.operation_date_hour desc nulls last,
      ${sql.ref(`t.${ROW_ID[table]}`)} desc`
}

/** Rows of one read. Above 1,000 it is large: it leaves room for small ones, and uses one connection in ten. */
export const BLOCK_ROWS = 2_000
/** Repetitions of a rejected read, after a second each. Clients have the same advice. */
const REPETITIONS = 10
const PAUSE_MS = 1_000

/**
 * Compiles the export of one of the two lists.
 * @returns reads the first block, then streams all blocks. A block is a page: with the data version of the
 *   first block, the pages are parts of one state. No transaction is open between two reads.
 */
function transactionExport(queries: TransactionQueries, item: TObject) {
  const skipped = LOOKUP_COLUMNS.length
  const formats = {
    json: { opening: '', writer: compileRowWriter(item, skipped, lineTemplate) },
    exactJson: {
      opening: '',
      writer: compileRowWriter(exactDecimals(item), skipped, lineTemplate),
    },
    csv: { opening: csvHeader(item), writer: compileRowWriter(item, skipped, csvTemplate) },
  }
  return async (
    db: Database,
    format: keyof typeof formats,
    request: ListRequest,
  ): Promise<ReadResponse> => {
    const { opening, writer } = formats[format]
    const { lookup, rows: first } = await readBlock(db, queries, request)
    if (first === undefined || request.knownVersions.includes('*'))
      return notModified(lookup, first)
    const next = { ...request, version: lookup.version, knownVersions: [] }
    const blocks = async function* () {
      let rows = first
      for (let page = 1, left = lookup.totalItems; ; page += 1) {
        left -= rows.count
        yield rows
        if (left === 0) return
        if (rows.count === 0) throw new Error('an export has fewer rows than its total')
        rows = await readNextBlock(db, queries, { ...next, page })
      }
    }
    const body = rowStream(blocks(), writer, opening, request.context)
    return { meta: { ...lookup, items: lookup.totalItems }, body }
  }
}

const readBlock = (db: Database, queries: TransactionQueries, request: ListRequest) =>
  readRows(db, queries[pageFor(request)], request, pageValues(request))

/** Reads a block, again after an overload. @throws ProblemError 412 if the data changed since the first block */
async function readNextBlock(db: Database, queries: TransactionQueries, request: ListRequest) {
  const { context } = request
  for (let repetition = 0; ; repetition += 1) {
    context.startedAt = performance.now()
    try {
      const { rows } = await readBlock(db, queries, request)
      if (rows) return rows
    } catch (error) {
      const isTransient = error instanceof Unavailable && !context.ended
      if (!isTransient || repetition === REPETITIONS) throw error
    }
    await sleep(PAUSE_MS)
  }
}
