import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/postgres/tables.ts'

/**
 * Remembers all rows of all connections, as a backup does.
 * @returns a function that puts them back without triggers, as a restore does
 */
export async function rememberState(db: Kysely<Tables>): Promise<() => Promise<void>> {
  const { rows: tables } = await sql<{ name: string; columns: string }>`
    select c.relname as name, string_agg(quote_ident(attname), ', ') as columns
    from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0
    where c.oid in (select 'connection'::regclass union all
        select conrelid from pg_constraint where confrelid = 'connection'::regclass)
      and attgenerated = '' and not relispartition and not attisdropped
    group by c.relname order by c.relname <> 'connection'`.execute(db)
  const saved: { name: string; columns: string; json: string }[] = []
  for (const table of tables) {
    const { rows } = await sql<{ json: string }>`
      select coalesce(json_agg(t)::text, '[]') as json from ${sql.table(table.name)} t`.execute(db)
    saved.push({ ...table, json: String(rows[0]?.json) })
  }
  return () =>
    db.transaction().execute(async (transaction) => {
      await setReplica(transaction)
      for (const { name, columns, json } of saved) {
        const table = sql.table(name)
        await sql`delete from ${table}`.execute(transaction)
        await sql`insert into ${table} (${sql.raw(columns)}) select ${sql.raw(columns)}
          from json_populate_recordset(null::${table}, ${json}::json)`.execute(transaction)
      }
    })
}

/** Turns triggers off for a transaction, on the workers of Citus, too. */
export async function setReplica(transaction: Kysely<Tables>): Promise<void> {
  await sql`set local citus.propagate_set_commands = 'local'`.execute(transaction)
  await sql`set local session_replication_role = replica`.execute(transaction)
}

/** Expires the cursors of all connections. */
export const expireCursors = (db: Kysely<Tables>) =>
  sql`update connection set data_version = data_version + 1,
    change_horizon = (data_version + 1) << 31`.execute(db)
