import type pg from 'pg'
import { COMPLETION_NOT_TOLD, type Kind } from './import-types.ts'

/** What became of the rows of an import, or what would become of them. */
export interface ImportCounts {
  read: number
  inserted: number
  updated: number
  unchanged: number
}

/** Counts what a merge of `import_row` into the rows of the connection will do. */
export async function countChanges(
  client: pg.ClientBase,
  kind: Kind,
  connectionId: string,
): Promise<ImportCounts> {
  const { rows } = await client.query<{ read: string; inserted: string; updated: string }>(
    `select count(*) as read,
       count(*) filter (where t.connection_id is null) as inserted,
       count(*) filter (where t.connection_id is not null and ${differs(kind)}) as updated
     from import_row i left join ${kind.table} t on ${isSameRow(kind)}`,
    [connectionId],
  )
  const read = Number(rows[0]?.read)
  const inserted = Number(rows[0]?.inserted)
  const updated = Number(rows[0]?.updated)
  return { read, inserted, updated, unchanged: read - inserted - updated }
}

/**
 * Inserts the new rows and updates those that differ, in one statement, so that the triggers which
 * keep the books run once. A row that is as it was is not written.
 */
export async function merge(
  client: pg.ClientBase,
  kind: Kind,
  connectionId: string,
): Promise<void> {
  const columns = kind.columns.join(', ')
  await client.query(
    `merge into ${kind.table} t using import_row i on ${isSameRow(kind)}
     when matched and ${differs(kind)} then update set (${columns}) = row (${columnsOf('i', kind)})
     when not matched then
       insert (connection_id, ${columns}) values ($1::bigint, ${columnsOf('i', kind)})`,
    [connectionId],
  )
}

/** An order that does not tell when it was completed was completed now, unless it was before. */
export async function fillCompletion(
  client: pg.ClientBase,
  kind: Kind,
  connectionId: string,
): Promise<void> {
  await client.query(
    `update import_row i set completed_at = coalesce(
       (select t.completed_at from ${kind.table} t where ${isSameRow(kind)}), now())
     where i.completed_at = '${COMPLETION_NOT_TOLD}'`,
    [connectionId],
  )
}

function isSameRow({ key }: Kind): string {
  return `t.connection_id = $1::bigint and t.${key.column} = i.${key.column}`
}

/**
 * Compares the stored bytes, because every digit counts: `=` takes 1.0 for 1.00, and `*<>` does not.
 */
function differs(kind: Kind): string {
  return `row(${columnsOf('t', kind)})::record *<> row(${columnsOf('i', kind)})::record`
}

function columnsOf(alias: string, { columns }: Kind): string {
  return columns.map((column) => `${alias}.${column}`).join(', ')
}
