import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { AssetsTransferOrder } from '../schemas/transfer-order.ts'
import { connectionOfApp, lookupColumns } from './connection.ts'
import {
  type ConnectionRequest,
  type ReadResponse,
  readResponse,
  responseQuery,
} from './read-response.ts'

export const transferOrderQuery = responseQuery({
  name: 'assets_transfer_order',
  purpose: 'Reads all completed orders, newest first.',
  table: 'assets_transfer_order',
  item: AssetsTransferOrder,
  lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null`)),
  // Newest first by completion, then by id. Only completed orders (contract 8, 15).
  rows: sql`t.completed_at is not null order by t.completed_at desc, t.id desc`,
})

/** Lists all transfer orders of a connection that the user completed (section 4.3). */
export function listTransferOrders(
  db: Database,
  request: ConnectionRequest,
): Promise<ReadResponse> {
  return readResponse(db, transferOrderQuery, request, [], () => ({ opening: '[', closing: ']' }))
}
