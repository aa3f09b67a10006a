import { setTimeout as sleep } from 'node:timers/promises'
import type { TObject } from '@sinclair/typebox'
import { rowStream } from '../json/response-body.ts'
import { compileRowWriter, csvHeader, csvTemplate, lineTemplate } from '../json/row-writer.ts'
import { Unavailable } from '../limits/errors.ts'
import type { Database } from '../postgres/database.ts'
import { exactDecimals } from '../schemas/fields.ts'
import { LOOKUP_COLUMNS } from './connection.ts'
import { type ListRequest, pageFor, pageValues, type TransactionQueries } from './list-page.ts'
import { notModified, type ReadResponse, readRows } from './read-response.ts'

/**
 * Rows of one read. A request for more than 1,000 rows is large: it leaves room for small ones, and uses one
 * connection in ten.
 */
export const BLOCK_ROWS = 2_000
/** Repetitions of a rejected read, after a second each. Clients have the same advice. */
const REPETITIONS = 10
const PAUSE_MS = 1_000

/**
 * Compiles the export of one of the two lists.
 * @returns reads the first block, then streams all blocks. A block is a page: with the data version of the
 *   first block, the pages are parts of one state. No transaction is open between two reads.
 */
export function transactionExport(queries: TransactionQueries, item: TObject) {
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

/**
 * Reads a block, again if the service or the database is overloaded.
 * @throws DataChanged if the data has changed since the first block
 */
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
