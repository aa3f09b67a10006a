import { sql } from 'kysely'
import { build } from '../postgres/statements.ts'
import { DEFAULT_LIMIT, type List } from '../schemas/list.ts'
import { connectionOfApp, lookupColumns } from './connection.ts'
import { p } from './parameters.ts'
import { type ListQueries, readRows } from './read.ts'
import { responseQuery } from './response.ts'

/** Reads all completed orders. If there are more than a small read may have, a large one follows. */
export function completedOrders(list: List): ListQueries {
  const all = responseQuery({
    title: list.table,
    purpose: 'Reads all completed orders, newest first.',
    list,
    lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null::bigint`)),
    // Newest first by completion, then by id. Only completed orders.
    rows: build
      .selectFrom('assets_transfer_order as t')
      .where('t.completed_at', 'is not', null)
      .limit(p.limit),
    order: { completed_at: 'desc', id: 'desc' },
  })
  return {
    statements: { all },
    read: async (db, request, known) => {
      const few = { limit: DEFAULT_LIMIT + 1 }
      const found = await readRows(db, list.table, all, request, few, known)
      if (found.rows.count <= DEFAULT_LIMIT) return found
      found.rows.discard()
      request.reader.expectRows(Number.POSITIVE_INFINITY)
      return readRows(db, list.table, all, request, { limit: null })
    },
  }
}
