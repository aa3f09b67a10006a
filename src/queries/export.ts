import { setTimeout as sleep } from 'node:timers/promises'
import type { TObject } from '@sinclair/typebox'
import { rowStream } from '../json/response-body.ts'
import { compileRowWriter, csvHeader, csvTemplate, lineTemplate } from '../json/row-writer.ts'
import { Unavailable } from '../limits/errors.ts'
import type { Database } from '../postgres/database.ts'
import { exactDecimals } from '../schemas/fields.ts'
import { LOOKUP_COLUMNS } from './connection.ts'
import { type ListRequest, pageFor, pageValues, type TransactionQueries } from './list-page.ts'
import { type ReadResponse, readRows, respond } from './read-response.ts'

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
    const { reservation } = request
    const response = await respond(
      db,
      queries[pageFor(request)],
      request,
      pageValues(request),
      (lookup) => (first) => {
        const version = { version: lookup.version, knownVersions: [] }
        const reads = async function* () {
          let rows = first
          for (let page = 1, left = lookup.totalItems; ; page += 1) {
            left -= rows.count
            yield rows
            if (left === 0) return
            if (rows.count === 0) throw new Error('an export has fewer rows than its total')
            rows = await readBlock(db, queries, { ...request, ...version, page })
          }
        }
        return rowStream(reads(), writer, opening, reservation)
      },
    )
    const { meta, body } = response
    return { meta: { ...meta, items: body === undefined ? 0 : meta.totalItems }, body }
  }
}

/**
 * Reads a block again if the service or the database is overloaded.
 * @throws DataChanged if the data has changed since the first block
 */
async function readBlock(db: Database, queries: TransactionQueries, request: ListRequest) {
  const { reservation } = request
  for (let repetition = 0; ; repetition += 1) {
    reservation.since = performance.now()
    try {
      const query = queries[pageFor(request)]
      const { rows } = await readRows(db, query, request, pageValues(request))
      if (rows) return rows
    } catch (error) {
      const isTransient = error instanceof Unavailable && !reservation.ended
      if (!isTransient || repetition === REPETITIONS) throw error
    }
    await sleep(PAUSE_MS)
  }
}
