import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build } from '../postgres/statements.ts'
import { AssetsTransferOrder } from '../schemas/transfer-order.ts'
import { connectionKeyParameter, connectionOfApp, headColumns } from './connection.ts'
import { answer, type ConnectionFacts, type Reply, replyQuery } from './read-response.ts'

const query = replyQuery({
  name: 'assets_transfer_order',
  item: AssetsTransferOrder,
  head: (kind) => connectionOfApp(kind).select(headColumns(sql`null`)),
  // Newest first by completion, then by id; what is not completed is not shown (contract 8 and 15).
  rows: build
    .selectFrom('assets_transfer_order as t')
    .where(
      sql<boolean>`t.connection_id = ${connectionKeyParameter} and head.connection_id is not null`,
    )
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

/** The orders that the end user completed for a connection, all of them (section 4.3). */
export function readAssetsTransferOrders(db: Database, facts: ConnectionFacts): Promise<Reply> {
  return answer(db, query, facts, [], () => ({ opening: '[', closing: ']' }))
}
