import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { pagedLists } from '../schemas/lists.ts'
import { findApp, missingApp, withoutTimeouts } from './database.ts'
import { type ListProperty, rowTypes } from './loading/row-types.ts'
import { pluralize, showProgress } from './output.ts'

/** Number of connections, and of rows of each list. */
export type Counts = Record<'connections' | ListProperty, number>

/** Counts the rows themselves: there are no row counts of transfer orders. */
async function countRows(db: Kysely<Tables>, connectionIds: string[]): Promise<Counts> {
  const rows = rowLists.map(({ table, list }) =>
    sql<number>`
      (select count(*)::float8 from ${sql.table(table)}
        where connection_id = any(${connectionIds}::bigint[]))`.as(list),
  )
  const connections = sql<number>`cardinality(${connectionIds}::bigint[])`.as('connections')
  return await db.selectNoFrom([connections, ...rows]).executeTakeFirstOrThrow()
}

/** Describes the rows of all lists, such as `2 portfolio transactions, 1 account transaction and 0 transfer orders`. */
export function describeRows(rows: Omit<Counts, 'connections'>): string {
  const parts = rowLists.map(({ list, noun }) => pluralize(rows[list], noun))
  return conjunction.format(parts)
}

const rowLists = Object.values(rowTypes)
const conjunction = new Intl.ListFormat('en-GB', { type: 'conjunction' })

/** Connections that a transaction deletes, so that a repetition continues after an interruption. */
const AT_ONCE = 500

/** Deletes connections with their rows. @returns the number of those that existed, and of rows */
export async function deleteConnections(
  db: Kysely<Tables>,
  ids: Iterable<string> | AsyncIterable<string>,
) {
  const total = await countRows(db, [])
  using _progress = showProgress(() => {
    return { step: 'Deleting', done: pluralize(total.connections, 'connection') }
  })
  const block = new Set<string>()
  const deleteBlock = async () => {
    const deleted = await withoutTimeout(db, async (transaction) => {
      // Locks the tables before any connection, as TRUNCATE does: see "Locks" in docs/writing.md.
      await countRows(transaction, [])
      const found: string[] = []
      // The order of the triggers' locks prevents deadlocks.
      for (const id of [...block].sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1))) {
        // Takes the strongest lock: a session that writes rows of the connection finishes first, or fails. Citus
        // locks rows of one connection at a time.
        const connection = transaction.selectFrom('connection').select('id').where('id', '=', id)
        if (await connection.forUpdate().executeTakeFirst()) found.push(id)
      }
      const counts = await countRows(transaction, found)
      await sql`delete from connection where id = any(${found}::bigint[])`.execute(transaction)
      return counts
    })
    block.clear()
    for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += deleted[name]
  }
  for await (const id of ids) if (block.add(id).size === AT_ONCE) await deleteBlock()
  if (block.size > 0) await deleteBlock()
  return total
}

/** Deletes an app with its tokens. @throws OperatorError when the app does not exist, or has connections */
export async function deleteApp(
  db: Kysely<Tables>,
  { name, withConnections }: { name: string; withConnections: boolean },
) {
  const app = await findApp(db, name)
  const connectionIds = async (from: Kysely<Tables>) => {
    const connections = from.selectFrom('connection').select('id').where('app_id', '=', app.id)
    return (await connections.orderBy('id').execute()).map(({ id }) => id)
  }
  const deleted = await deleteConnections(db, withConnections ? await connectionIds(db) : [])
  return await withoutTimeout(db, async (transaction) => {
    // Takes the strongest lock: a session that adds a token or a connection finishes first, or fails. A change of
    // a unique column takes it on each copy of the row. On Citus, FOR UPDATE would lock one copy.
    const locked = transaction.updateTable('app').set({ name: sql`id::text` })
    const { numUpdatedRows } = await locked.where('id', '=', app.id).executeTakeFirst()
    if (numUpdatedRows === 0n) throw missingApp(name)
    const left = await connectionIds(transaction)
    if (left.length > 0)
      throw new OperatorError(
        `The app ${name} still has ${pluralize(left.length, 'connection')} with ` +
          `${describeRows(await countRows(transaction, left))}. --with-connections deletes them, too.`,
      )
    const tokens = transaction.deleteFrom('app_token').where('app_id', '=', app.id)
    const { numDeletedRows } = await tokens.executeTakeFirst()
    await transaction.deleteFrom('app').where('id', '=', app.id).execute()
    return { ...app, tokens: Number(numDeletedRows), ...deleted }
  })
}

/** Runs a transaction without statement timeout: deleting millions of rows takes long. */
export async function withoutTimeout<T>(
  db: Kysely<Tables>,
  work: (transaction: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (transaction) => {
    await sql.raw(withoutTimeouts('transaction')).execute(transaction)
    // Citus otherwise rejects a change of an app after parallel reads. PostgreSQL ignores the setting.
    await sql`set local citus.multi_shard_modify_mode = 'sequential'`.execute(transaction)
    return await work(transaction)
  })
}

/**
 * Deletes the ids of rows that were removed before this number of days, and the versions that were replaced before.
 * Their cursors expire (410). A transaction locks one connection, so that imports into others do not wait.
 */
export async function pruneCursors(db: Kysely<Tables>, days: number) {
  const limit = sql`now() - make_interval(days => ${days}::integer)`
  const { numAffectedRows: versions } = await withoutTimeout(db, (transaction) =>
    sql`
      delete from connection_version v
      where (
        select next.changed_at from connection_version next
        where next.connection_id = v.connection_id and next.data_version > v.data_version
        order by next.data_version limit 1) < ${limit}`.execute(transaction),
  )
  const pruned = { days, removals: 0, versions: Number(versions), connections: 0 }
  for (const list of pagedLists) {
    const table = `${list.table}_removal`
    const { rows } = await sql<{ id: string; last: string }>`
      select connection_id as id, max(change_number) as last from ${sql.table(table)}
      where removed_at < ${limit} group by 1`.execute(db)
    for (const { id, last } of rows)
      await withoutTimeout(db, async (transaction) => {
        const moved = await sql`
          update connection set change_horizon = ${last} where id = ${id} and change_horizon < ${last}
        `.execute(transaction)
        const removed = await sql`
          delete from ${sql.table(table)} where connection_id = ${id} and change_number <= ${last}
        `.execute(transaction)
        pruned.connections += Number(moved.numAffectedRows)
        pruned.removals += Number(removed.numAffectedRows)
      })
  }
  return pruned
}
