import { sql } from 'kysely'
import { rowWriters } from '../json/row-writer.ts'
import { build } from '../postgres/statements.ts'
import { DEFAULT_LIMIT, type ListDefinition } from '../schemas/list.ts'
import { connectionOfApp, lookupColumns } from './connection.ts'
import { p } from './parameters.ts'
import { type ListReader, readRows, responseOf } from './read.ts'
import { responseQuery } from './response.ts'

const ARRAY = { opening: '[', closing: ']' }

/** Reads all completed orders (section 4.3). If there are more than a small read may have, a large one follows. */
export function completedOrders(list: ListDefinition): ListReader {
  const query = responseQuery({
    title: list.table,
    purpose: 'Reads all completed orders, newest first.',
    list,
    lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null`)),
    // Newest first by completion, then by id. Only completed orders (contract 8, 15).
    rows: build
      .selectFrom('assets_transfer_order as t')
      .where('t.completed_at', 'is not', null)
      .orderBy('t.completed_at', 'desc')
      .orderBy('t.id', 'desc')
      .limit(p.limit),
  })
  const writers = rowWriters(list.item)
  return {
    queries: { all: query },
    formats: ['json', 'exactJson'],
    limitOf: () => 0,
    read: async (db, request) => {
      const { reader, format } = request
      let found = await readRows(db, query, request, { limit: DEFAULT_LIMIT + 1 })
      const isWanted = !request.knownVersions.includes('*')
      if (found.rows && found.rows.count > DEFAULT_LIMIT && isWanted) {
        found.rows.discard()
        reader.expectRows(Number.POSITIVE_INFINITY)
        found = await readRows(db, query, { ...request, knownVersions: [] }, { limit: null })
      }
      return responseOf(found, request, writers[format], ARRAY)
    },
  }
}
