import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { findApp, missingApp } from './database.ts'
import { pluralize } from './output.ts'

export interface DeletedRows {
  portfolioTransactions: number
  accountTransactions: number
  transferOrders: number
}

/** Counts the rows themselves: there are no row counts of transfer orders. */
async function countRows(db: Kysely<Tables>, connectionIds: string[]): Promise<DeletedRows> {
  const count = (table: string) => sql<number>`
    (select count(*)::float8 from ${sql.table(table)}
      where connection_id = any(${connectionIds}::bigint[]))`
  return await db
    .selectNoFrom([
      count('portfolio_transaction').as('portfolioTransactions'),
      count('account_transaction').as('accountTransactions'),
      count('assets_transfer_order').as('transferOrders'),
    ])
    .executeTakeFirstOrThrow()
}

/** Locks the tables before any connection, as TRUNCATE does: see "Write with SQL" in docs/importing.md. */
const lockTables = (transaction: Kysely<Tables>) => countRows(transaction, [])

export function describeRows(rows: DeletedRows): string {
  const portfolio = pluralize(rows.portfolioTransactions, 'portfolio transaction')
  const account = pluralize(rows.accountTransactions, 'account transaction')
  return `${portfolio}, ${account} and ${pluralize(rows.transferOrders, 'transfer order')}`
}

/**
 * Deletes a connection with its rows and row counts, permanently.
 * @returns the id, the name of its app, the label, and the deleted rows
 * @throws OperatorError when the connection does not exist any more
 */
export async function deleteConnection(db: Kysely<Tables>, id: string) {
  return await withoutTimeout(db, async (transaction) => {
    await lockTables(transaction)
    const connection = await lockConnection(transaction, id)
    if (!connection) throw new OperatorError('The connection does not exist any more.')
    const rows = await countRows(transaction, [id])
    await transaction.deleteFrom('connection').where('id', '=', id).execute()
    return { ...connection, ...rows }
  })
}

/** Number of connections that one transaction deletes. */
export const DELETED_AT_ONCE = 500

/** Deletes those of the connections that exist, with their rows, in one transaction. */
export async function deleteConnections(db: Kysely<Tables>, ids: string[]) {
  return await withoutTimeout(db, async (transaction) => {
    const found: string[] = []
    for (const id of ids) if (await lockConnection(transaction, id)) found.push(id)
    const rows = await countRows(transaction, found)
    await transaction
      .deleteFrom('connection')
      .where('id', 'in', [null, ...found])
      .execute()
    return { connections: found.length, ...rows }
  })
}

/** Adds the counts of a deletion to a total. */
export function addCounts<Counts extends object>(total: Counts, more: Counts): Counts {
  const pairs = Object.entries(total).map(([name, count]) => [
    name,
    count + more[name as keyof Counts],
  ])
  return Object.fromEntries(pairs)
}

export const NONE_DELETED = {
  connections: 0,
  portfolioTransactions: 0,
  accountTransactions: 0,
  transferOrders: 0,
}

/**
 * Deletes an app with its tokens, permanently.
 * @param app `withConnections`: deletes its connections and their rows, too. Many go in several transactions, so
 *   that a repetition continues after an interruption.
 * @param onProgress receives the number of connections deleted so far
 * @returns id, name, and the number of deleted tokens, connections and rows
 * @throws OperatorError when the app does not exist, or has connections without `withConnections`
 */
export async function deleteApp(
  db: Kysely<Tables>,
  { name, withConnections }: { name: string; withConnections: boolean },
  onProgress: (connections: number) => void = () => {},
) {
  let deleted = NONE_DELETED
  const { id: appId } = await findApp(db, name)
  while (withConnections) {
    const batch = await db
      .selectFrom('connection')
      .select('id')
      .where('app_id', '=', appId)
      .orderBy('id')
      .limit(DELETED_AT_ONCE)
      .execute()
    // The last ones go with the app.
    if (batch.length < DELETED_AT_ONCE) break
    const ids = batch.map(({ id }) => id)
    deleted = addCounts(deleted, await deleteConnections(db, ids))
    onProgress(deleted.connections)
  }
  return await withoutTimeout(db, async (transaction) => {
    await lockTables(transaction)
    const app = { id: await lockApp(transaction, name), name }
    // In the order of the triggers' locks, to prevent a deadlock.
    const found = await transaction
      .selectFrom('connection')
      .select('id')
      .where('app_id', '=', app.id)
      .orderBy('id')
      .execute()
    const connectionIds: string[] = []
    // Citus locks rows of one connection at a time.
    for (const { id } of found)
      if (!withConnections || (await lockConnection(transaction, id))) connectionIds.push(id)
    const connections = connectionIds.length
    const rows = await countRows(transaction, connectionIds)
    if (connections > 0 && !withConnections) {
      throw new OperatorError(
        `The app ${name} still has ${pluralize(connections, 'connection')} with ` +
          `${describeRows(rows)}; nothing was deleted. --with-connections deletes them, too.`,
      )
    }
    const tokens = await transaction
      .deleteFrom('app_token')
      .where('app_id', '=', app.id)
      .executeTakeFirst()
    await transaction.deleteFrom('app').where('id', '=', app.id).execute()
    const counts = addCounts(deleted, { connections, ...rows })
    return { ...app, tokens: Number(tokens.numDeletedRows), ...counts }
  })
}

/**
 * Takes the strongest lock: a session that adds a token or a connection finishes first, or fails. A change of
 * a unique column takes it on each copy of the row. On Citus, FOR UPDATE would lock one copy.
 * @returns the id of the app, which is deleted with its changed name
 * @throws OperatorError when the app does not exist
 */
async function lockApp(transaction: Kysely<Tables>, name: string): Promise<string> {
  const locked = await transaction
    .updateTable('app')
    .set({ name: sql`id::text` })
    .where('name', '=', name)
    .returning('id')
    .executeTakeFirst()
  if (locked) return locked.id
  throw missingApp(name)
}

/** Takes the strongest lock: a session that writes rows of the connection finishes first, or fails. */
async function lockConnection(transaction: Kysely<Tables>, id: string) {
  return await transaction
    .selectFrom('connection')
    .innerJoin('app', 'app.id', 'connection.app_id')
    .select(['connection.id', 'app.name as app', 'connection.label'])
    .where('connection.id', '=', id)
    .forUpdate('connection')
    .executeTakeFirst()
}

/** Runs a transaction without statement timeout: deleting millions of rows takes long. */
export async function withoutTimeout<T>(
  db: Kysely<Tables>,
  work: (transaction: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (transaction) => {
    await sql`set local statement_timeout = 0`.execute(transaction)
    // Citus otherwise rejects a change of an app after parallel reads. PostgreSQL ignores the setting.
    await sql`set local citus.multi_shard_modify_mode = 'sequential'`.execute(transaction)
    return await work(transaction)
  })
}
