/** Rows and addresses of any list of the service, so that a test can go over all of them. */
import { randomUUID } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/postgres/tables.ts'
import type { ListRoute } from '../../src/routes/list.ts'
import { type Column, columnOf, columnsOf } from '../../src/schemas/fields.ts'

type AnyList = ListRoute['list']

/** Path of a list for a connection token. */
export function addressOf({ url }: Pick<ListRoute, 'url'>, token: string): string {
  return `/api/v1/queries${url.replace(':token', encodeURIComponent(token))}`
}

/** Columns that a row needs besides the fields of the API. */
const OTHERS: Record<string, string> = { completed_at: '2025-01-01T00:00:00Z' }

/** Adds rows that a request returns, with the fields that cannot be null and a date. @returns their ids */
export async function addRows(
  db: Kysely<Tables>,
  list: AnyList,
  connection: { id: string },
  count: number,
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  const { rows: columns } = await sql<{ name: string }>`
    select attname as name from pg_attribute
    where attrelid = ${list.table}::regclass and attnum > 0`.execute(db)
  for (const id of ids) {
    const row = new Map<string, string>([['connection_id', connection.id]])
    for (const column of columnsOf(list.item)) {
      const value = valueOfField(column)
      if (value !== undefined) row.set(columnOf(column.path), value)
    }
    for (const { name } of columns) {
      const value = OTHERS[name]
      if (value !== undefined) row.set(name, value)
    }
    row.set(columnOf(list.id), id)
    await sql`
      insert into ${sql.table(list.table)} (${sql.join([...row.keys()].map((name) => sql.ref(name)))})
      values (${sql.join([...row.values()])})`.execute(db)
  }
  return ids
}

/** A value for a field that cannot be null, and for each day. */
function valueOfField({ schema, nullable }: Column): string | undefined {
  const { format, enum: values } = schema
  if (format === 'date') return '2025-01-01'
  if (nullable) return undefined
  if (values) return values[0]
  if (format === 'uuid') return randomUUID()
  if (format === 'decimal') return '1'
  return 'text'
}
