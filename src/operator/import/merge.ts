import pg from 'pg'
import { COMPLETION_ABSENT, type ImportType } from './import-types.ts'

/** Effect of an import, or of a dry run, in rows. */
export interface ImportCounts {
  read: number
  inserted: number
  updated: number
  unchanged: number
  /** Rows of the connection that a replacement removes, because the input does not have them. */
  removed: number
}

/** Inclusive range of effective dates, YYYY-MM-DD. An absent bound is no limit. */
export interface DateRange {
  from?: string | undefined
  to?: string | undefined
}

/** Compares an SQL expression of a day with the bounds. */
export function isInRange(day: string, { from, to }: DateRange): string {
  const conditions = ['true']
  if (from !== undefined) conditions.push(`${day} >= ${pg.escapeLiteral(from)}::date`)
  if (to !== undefined) conditions.push(`${day} <= ${pg.escapeLiteral(to)}::date`)
  return conditions.join(' and ')
}

/**
 * Finds the rows of `import_row` that the connection has already, in the temporary table `present_row`, and
 * counts the changes that merging makes. On Citus, the inner join runs on the shard of the connection. An outer
 * join would copy all rows of the connection to the coordinator.
 */
export async function findChanges(
  client: pg.ClientBase,
  type: ImportType,
  connectionId: string,
  read: number,
): Promise<Omit<ImportCounts, 'removed'>> {
  const any = await client.query(
    `select from ${type.table} where connection_id = $1::bigint limit 1`,
    [connectionId],
  )
  if (any.rowCount === 0) return { read, inserted: read, updated: 0, unchanged: 0 }
  await client.query(
    `create temporary table present_row on commit drop as
     select i.line, ${differs(type)} as is_changed
     from import_row i join ${type.table} t on ${isSameRow(type)}`,
    [connectionId],
  )
  const { rows } = await client.query<{ present: string; updated: string }>(
    `select count(*) as present, count(*) filter (where is_changed) as updated from present_row`,
  )
  const present = Number(rows[0]?.present)
  const updated = Number(rows[0]?.updated)
  return { read, inserted: read - present, updated, unchanged: present - updated }
}

/**
 * Inserts new rows, and updates those that differ. Equal rows are not written. Citus supports neither
 * MERGE from a temporary table, nor UPDATE with one.
 * @param connection its data version, and its locked row
 * @param counts result of findChanges()
 */
export async function merge(
  client: pg.ClientBase,
  type: ImportType,
  connection: { id: string; version: string },
  { read, inserted, updated }: Pick<ImportCounts, 'read' | 'inserted' | 'updated'>,
) {
  // The change number of a row: the version after the statement, and its line (migration 0002).
  const number = type.hasChangeNumbers ? [['change_number', '$2::bigint << 31 | i.line']] : []
  const values = [...number, ...type.columns.map((column) => [column, `i.${column}`])]
  const columns = values.map(([column]) => column)
  const insert = (rows: string) => `
    insert into ${type.table} (connection_id, ${columns.join(', ')})
    select $1::bigint, ${values.map(([, value]) => value).join(', ')} from import_row i ${rows}`
  const run = (text: string, changes: number) => {
    const version = String(BigInt(connection.version) + BigInt(changes))
    return client.query(text, type.hasChangeNumbers ? [connection.id, version] : [connection.id])
  }
  const isNew = 'left join present_row p on p.line = i.line where p.line is null'
  if (inserted > 0) await run(insert(inserted === read ? '' : isNew), 1)
  if (updated === 0) return
  const changed = columns.map((column) => `${column} = excluded.${column}`)
  await run(
    `${insert('join present_row p on p.line = i.line where p.is_changed')}
     on conflict (connection_id, ${type.key.column}) do update set ${changed.join(', ')}`,
    inserted > 0 ? 2 : 1,
  )
}

/** Selects the rows of the connection in a range, each with its row of the input, if any. */
function rowsInRange({ key, table }: ImportType, range: DateRange): string {
  return `from ${table} t left join import_row i on i.${key.column} = t.${key.column}
    where t.connection_id = $1::bigint and ${isInRange('t.effective_day', range)}`
}

/** Counts the rows of the connection in a range, and those of them that the input does not have. */
export async function countRemovals(
  client: pg.ClientBase,
  type: ImportType,
  connectionId: string,
  range: DateRange,
) {
  const { rows } = await client.query<{ present: string; removed: string }>(
    `select count(*) as present, count(*) filter (where i.line is null) as removed
     ${rowsInRange(type, range)}`,
    [connectionId],
  )
  return { present: Number(rows[0]?.present), removed: Number(rows[0]?.removed) }
}

/** Deletes the rows of the connection in a range that the input does not have. */
export async function removeOthers(
  client: pg.ClientBase,
  type: ImportType,
  connectionId: string,
  range: DateRange,
) {
  await client.query(
    `delete from ${type.table} where connection_id = $1::bigint and ${type.key.column} in
       (select t.${type.key.column} ${rowsInRange(type, range)} and i.line is null)`,
    [connectionId],
  )
}

/** Completes an order without `completedAt` now, unless it has a time of completion already. */
export async function fillCompletion(client: pg.ClientBase, type: ImportType, id: string) {
  // A temporary table: Citus does not join an UPDATE of a temporary table with a distributed one.
  await client.query(
    `create temporary table completion on commit drop as
     select id, completed_at from ${type.table}
     where connection_id = $1::bigint and completed_at is not null`,
    [id],
  )
  await client.query(
    `update import_row i set completed_at = coalesce(
       (select t.completed_at from completion t where t.id = i.id), now())
     where i.completed_at = '${COMPLETION_ABSENT}'`,
  )
}

function isSameRow({ key }: ImportType): string {
  return `t.connection_id = $1::bigint and t.${key.column} = i.${key.column}`
}

/** Compares every digit: 1.0 equals 1.00 with `=`, but has another scale. */
function differs({ columns, decimals }: ImportType): string {
  const pairs = [
    ...columns.map((column) => [`t.${column}`, `i.${column}`]),
    ...decimals.map((column) => [`scale(t.${column})`, `scale(i.${column})`]),
  ]
  return `(${pairs.map((pair) => pair.join(' is distinct from ')).join(' or ')})`
}
