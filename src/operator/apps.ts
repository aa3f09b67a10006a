import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { isViolation } from './errors.ts'

export interface App {
  id: string
  name: string
}

/**
 * Registers an app.
 * @param app `clientId` is how an identity provider knows it, where there is one
 * @throws OperatorError when the name or the client id is taken
 */
export async function createApp(
  db: Kysely<Tables>,
  app: { name: string; clientId?: string | undefined },
): Promise<App> {
  try {
    return await db
      .insertInto('app')
      .values({ name: app.name, client_id: app.clientId ?? null })
      .returning(['id', 'name'])
      .executeTakeFirstOrThrow()
  } catch (error) {
    if (isViolation(error, 'app_name_key'))
      throw new OperatorError(`There is an app ${app.name} already.`)
    throw clientIdTaken(error, app.clientId)
  }
}

/**
 * Has an identity provider's client id stand for an app from the next request on, and the one that it
 * had no more.
 * @param clientId null: no client id stands for it
 * @throws OperatorError when there is no such app, or another one has the client id
 */
export async function setClientId(
  db: Kysely<Tables>,
  { name, clientId }: { name: string; clientId: string | null },
): Promise<App & { clientId: string | null }> {
  const app = await findApp(db, name)
  try {
    await db.updateTable('app').set({ client_id: clientId }).where('id', '=', app.id).execute()
    return { ...app, clientId }
  } catch (error) {
    throw clientIdTaken(error, clientId)
  }
}

/** A sentence in place of the database's error, if that is what it is about. */
function clientIdTaken(error: unknown, clientId: string | null | undefined): unknown {
  if (!isViolation(error, 'app_client_id_key')) return error
  return new OperatorError(`Another app has the client id ${clientId} already.`)
}

export async function listApps(db: Kysely<Tables>) {
  return await db
    .selectFrom('app')
    .select(['id', 'name', 'client_id as clientId', 'created_at as createdAt'])
    .select((app) =>
      app
        .selectFrom('connection')
        .whereRef('connection.app_id', '=', 'app.id')
        .select(sql<number>`count(*)::integer`.as('count'))
        .as('connections'),
    )
    .orderBy('name')
    .execute()
}

/**
 * @param options `lock` keeps everyone else from changing it, and from giving it tokens and connections
 * @throws OperatorError when there is no app of that name
 */
export async function findApp(
  db: Kysely<Tables>,
  name: string,
  { lock = false } = {},
): Promise<App> {
  const app = await db
    .selectFrom('app')
    .select(['id', 'name'])
    .where('name', '=', name)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst()
  if (app) return app
  throw new OperatorError(`There is no app ${name}: \`app list\` shows those that there are.`)
}
