import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { findApp } from './apps.ts'
import { pluralize } from './output.ts'

/** How many rows of each kind there are. */
export interface RowCounts {
  portfolioTransactions: number
  accountTransactions: number
  transferOrders: number
}

/** Counts the rows of connections themselves: the books do not know of transfer orders. */
async function countRows(db: Kysely<Tables>, connectionIds: string[]): Promise<RowCounts> {
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

/** In words, for people. */
export function rowsInWords(counts: RowCounts): string {
  const { portfolioTransactions, accountTransactions, transferOrders } = counts
  return (
    `${pluralize(portfolioTransactions, 'portfolio transaction')}, ` +
    `${pluralize(accountTransactions, 'account transaction')} and ` +
    pluralize(transferOrders, 'transfer order')
  )
}

interface DeletedConnection extends RowCounts {
  id: string
  /** Name of the app that it was of. */
  app: string
  label: string | null
}

interface DeletedApp extends RowCounts {
  id: string
  name: string
  tokens: number
  connections: number
}

/**
 * Deletes a connection with its rows and its books, for good.
 * @throws OperatorError when there is no such connection any more
 */
export async function deleteConnection(db: Kysely<Tables>, id: string): Promise<DeletedConnection> {
  return await withoutTimeout(db, async (transaction) => {
    // The strongest lock: whoever writes rows of it ends first, or finds it gone.
    const connection = await transaction
      .selectFrom('connection')
      .innerJoin('app', 'app.id', 'connection.app_id')
      .select(['connection.id', 'app.name as app', 'connection.label'])
      .where('connection.id', '=', id)
      .forUpdate('connection')
      .executeTakeFirst()
    if (!connection) throw new OperatorError('The connection does not exist any more.')
    const rows = await countRows(transaction, [id])
    await transaction.deleteFrom('connection').where('id', '=', id).execute()
    return { ...connection, ...rows }
  })
}

/**
 * Deletes an app with its tokens, for good.
 * @param app `withConnections` deletes its connections and their rows, too
 * @throws OperatorError when there is no such app, or it has connections and they are not to go
 */
export async function deleteApp(
  db: Kysely<Tables>,
  { name, withConnections }: { name: string; withConnections: boolean },
): Promise<DeletedApp> {
  return await withoutTimeout(db, async (transaction) => {
    const app = await findApp(transaction, name, { lock: true })
    const connectionIds = await connectionsOf(transaction, app.id, { lock: withConnections })
    const rows = await countRows(transaction, connectionIds)
    const connections = connectionIds.length
    if (connections > 0 && !withConnections) {
      throw new OperatorError(
        `The app ${name} still has ${pluralize(connections, 'connection')} with ` +
          `${rowsInWords(rows)}; nothing was deleted. --with-connections deletes them, too.`,
      )
    }
    const tokens = await transaction
      .deleteFrom('app_token')
      .where('app_id', '=', app.id)
      .executeTakeFirst()
    await transaction.deleteFrom('app').where('id', '=', app.id).execute()
    return { ...app, tokens: Number(tokens.numDeletedRows), connections, ...rows }
  })
}

/** In the order of ids, as the books lock them, so that the two do not end in a deadlock. */
async function connectionsOf(
  db: Kysely<Tables>,
  appId: string,
  { lock }: { lock: boolean },
): Promise<string[]> {
  const found = await db
    .selectFrom('connection')
    .select('id')
    .where('app_id', '=', appId)
    .orderBy('id')
    .$if(lock, (query) => query.forUpdate())
    .execute()
  return found.map(({ id }) => id)
}

/** Deleting millions of rows may last, whatever the role or the database allows a statement. */
async function withoutTimeout<T>(
  db: Kysely<Tables>,
  work: (transaction: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async (transaction) => {
    await sql`set local statement_timeout = 0`.execute(transaction)
    return await work(transaction)
  })
}
