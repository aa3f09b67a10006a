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
 * @param app `clientId`: id of the app at the identity provider
 * @throws OperatorError when the name or the client id is taken
 */
export async function createApp(
  db: Kysely<Tables>,
  { name, clientId }: { name: string; clientId?: string | undefined },
): Promise<App> {
  try {
    return await db
      .insertInto('app')
      .values({ name, client_id: clientId ?? null })
      .returning(['id', 'name'])
      .executeTakeFirstOrThrow()
  } catch (error) {
    if (!isViolation(error, 'app_name_key')) throw clientIdTaken(error, clientId)
    throw new OperatorError(`There is an app ${name} already.`)
  }
}

/**
 * Replaces the client id of an app, from the next request on.
 * @param app `clientId` null: tokens of the identity provider are rejected
 * @throws OperatorError when the app does not exist, or another app has the client id
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
 * Finds an app by its name.
 * @param options `lock`: other sessions wait to change it, or to add tokens and connections
 * @throws OperatorError when the app does not exist
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
  throw new OperatorError(`There is no app ${name}: \`app list\` shows all apps.`)
}
