import type pg from 'pg'
import { COMPLETION_ABSENT, type ImportType } from './import-types.ts'

/** Effect of an import, or of a dry run, in rows. */
export interface ImportCounts {
  read: number
  inserted: number
  updated: number
  unchanged: number
}

/** Counts the changes that merging `import_row` into the rows of the connection makes. */
export async function countChanges(
  client: pg.ClientBase,
  type: ImportType,
  connectionId: string,
): Promise<ImportCounts> {
  const { rows } = await client.query<{ read: string; inserted: string; updated: string }>(
    `select count(*) as read,
       count(*) filter (where t.connection_id is null) as inserted,
       count(*) filter (where t.connection_id is not null and ${differs(type)}) as updated
     from import_row i left join ${type.table} t on ${isSameRow(type)}`,
    [connectionId],
  )
  const read = Number(rows[0]?.read)
  const inserted = Number(rows[0]?.inserted)
  const updated = Number(rows[0]?.updated)
  return { read, inserted, updated, unchanged: read - inserted - updated }
}

/**
 * Inserts new rows and updates those that differ, in one statement: the triggers that keep the row
 * counts run once. Equal rows are not written.
 */
export async function merge(client: pg.ClientBase, type: ImportType, connectionId: string) {
  const columns = type.columns.join(', ')
  await client.query(
    `merge into ${type.table} t using import_row i on ${isSameRow(type)}
     when matched and ${differs(type)} then update set (${columns}) = row (${columnsOf('i', type)})
     when not matched then
       insert (connection_id, ${columns}) values ($1::bigint, ${columnsOf('i', type)})`,
    [connectionId],
  )
}

/** Completes an order without `completedAt` now, unless it has a time of completion already. */
export async function fillCompletion(client: pg.ClientBase, type: ImportType, id: string) {
  await client.query(
    `update import_row i set completed_at = coalesce(
       (select t.completed_at from ${type.table} t where ${isSameRow(type)}), now())
     where i.completed_at = '${COMPLETION_ABSENT}'`,
    [id],
  )
}

function isSameRow({ key }: ImportType): string {
  return `t.connection_id = $1::bigint and t.${key.column} = i.${key.column}`
}

/** Compares stored bytes, because every digit counts: 1.0 equals 1.00 with `=`, but not with `*<>`. */
function differs(type: ImportType): string {
  return `row(${columnsOf('t', type)})::record *<> row(${columnsOf('i', type)})::record`
}

function columnsOf(alias: string, { columns }: ImportType): string {
  return columns.map((column) => `${alias}.${column}`).join(', ')
}
