import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build } from '../postgres/statements.ts'
import { AssetsTransferOrder } from '../schemas/transfer-order.ts'
import { connectionOfApp, keyParameter, lookupColumns } from './connection.ts'
import {
  type ConnectionRequest,
  type ReadResponse,
  readResponse,
  responseQuery,
} from './read-response.ts'

export const transferOrderQuery = responseQuery({
  name: 'assets_transfer_order',
  item: AssetsTransferOrder,
  lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null`)),
  // Newest first by completion, then by id. Only completed orders (contract 8, 15).
  rows: build
    .selectFrom('assets_transfer_order as t')
    .where(sql<boolean>`
      t.connection_id = ${keyParameter} and lookup.connection_id is not null`)
    .where('t.completed_at', 'is not', null)
    .orderBy('t.completed_at', 'desc')
    .orderBy('t.id', 'desc')
    .select([
      't.id as id',
      't.portfolio as portfolio',
      't.investment as investment',
      't.name as name',
      't.isin as isin',
      't.currency as currency',
      't.asset_type as assetType',
      't.titles as titles',
      't.amount as amount',
      't.total as total',
      't.marketer_name as marketer.name',
      't.marketer_cif as marketer.cif',
      't.management_company_name as managementCompany.name',
      't.management_company_cif as managementCompany.cif',
    ]),
})

/** Lists all transfer orders of a connection that the user completed (section 4.3). */
export function listTransferOrders(
  db: Database,
  request: ConnectionRequest,
): Promise<ReadResponse> {
  return readResponse(db, transferOrderQuery, request, [], () => ({ opening: '[', closing: ']' }))
}
