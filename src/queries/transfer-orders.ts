import { sql } from 'kysely'
import { rowWriters } from '../json/row-writer.ts'
import { parameter } from '../postgres/statements.ts'
import { DEFAULT_LIMIT, type ListDefinition } from '../schemas/list.ts'
import { connectionOfApp, lookupColumns } from './connection.ts'
import { type ListReader, readRows, responseOf, responseQuery } from './read.ts'

const ARRAY = { opening: '[', closing: ']' }

/** Reads all completed orders (section 4.3). If there are more than a small read may have, a large one follows. */
export function completedOrders(list: ListDefinition): ListReader {
  const query = responseQuery({
    name: list.table,
    purpose: 'Reads all completed orders, newest first.',
    list,
    lookup: (method) => connectionOfApp(method).select(lookupColumns(sql`null`)),
    // Newest first by completion, then by id. Only completed orders (contract 8, 15).
    rows: sql`
      t.completed_at is not null order by t.completed_at desc, t.id desc
      limit ${parameter<number>(4, 'bigint')}`,
  })
  const writers = rowWriters(list.item)
  return {
    queries: { all: query },
    read: async (db, request) => {
      const { reader, format } = request
      let found = await readRows(db, query, request, [String(DEFAULT_LIMIT + 1)])
      const isWanted = !request.knownVersions.includes('*')
      if (found.rows && found.rows.count > DEFAULT_LIMIT && isWanted) {
        found.rows.discard()
        reader.expectRows(Number.POSITIVE_INFINITY)
        found = await readRows(db, query, { ...request, knownVersions: [] }, [null])
      }
      return responseOf(found, request, writers[format], ARRAY)
    },
  }
}
