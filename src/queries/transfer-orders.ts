import { sql } from 'kysely'
import { jsonArray } from '../json/response-body.ts'
import { SMALL_ROWS } from '../limits/response-memory.ts'
import type { Database } from '../postgres/database.ts'
import { parameter } from '../postgres/statements.ts'
import { AssetsTransferOrder } from '../schemas/transfer-order.ts'
import { connectionOfApp, lookupColumns } from './connection.ts'
import {
  type ConnectionRequest,
  notModified,
  type ReadResponse,
  readRows,
  responseQuery,
} from './read-response.ts'

const limit = parameter<number>(4, 'bigint')

export const transferOrderQuery = responseQuery({
  name: 'assets_transfer_order',
  purpose: 'Reads all completed orders, newest first.',
  table: 'assets_transfer_order',
  item: AssetsTransferOrder,
  lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null`)),
  // Newest first by completion, then by id. Only completed orders (contract 8, 15).
  rows: sql`t.completed_at is not null order by t.completed_at desc, t.id desc limit ${limit}`,
})

/**
 * Lists all transfer orders of a connection that the user completed (section 4.3). Their number is unknown before the
 * read. A second read, with the large ones, follows if there are more than a small read may have.
 */
export async function listTransferOrders(
  db: Database,
  request: ConnectionRequest,
): Promise<ReadResponse> {
  const { context } = request
  const first = await readRows(db, transferOrderQuery, request, [String(SMALL_ROWS + 1)])
  let { lookup, rows } = first
  if (rows && rows.count > SMALL_ROWS && !request.knownVersions.includes('*')) {
    rows.discard()
    context.memory.expect(Number.POSITIVE_INFINITY)
    const all = { ...request, knownVersions: [] }
    ;({ lookup, rows } = await readRows(db, transferOrderQuery, all, [null]))
  }
  if (rows === undefined || request.knownVersions.includes('*')) return notModified(lookup, rows)
  const writer = request.exact ? transferOrderQuery.exactWriter : transferOrderQuery.writer
  const items = rows.count
  const body = jsonArray(rows, writer, { opening: '[', closing: ']' }, context)
  return { meta: { ...lookup, items }, body }
}
