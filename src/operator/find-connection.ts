import type { Kysely } from 'kysely'
import type { Tables } from '../database/tables.ts'
import { tokenHash } from '../database/token-hash.ts'
import { findApp } from './apps.ts'
import { Failure } from './failure.ts'

/**
 * Finds a connection by its token, which is unique within an app.
 * @returns its id
 * @throws Failure when there is none, or when several apps have one and none was named
 */
export async function findConnection(
  db: Kysely<Tables>,
  facts: { token: string; app?: string | undefined },
): Promise<string> {
  const app = facts.app === undefined ? undefined : await findApp(db, facts.app)
  const found = await db
    .selectFrom('connection')
    .innerJoin('app', 'app.id', 'connection.app_id')
    .select(['connection.id', 'app.name'])
    .where('token_hash', '=', tokenHash(facts.token))
    .$if(app !== undefined, (query) => query.where('app.id', '=', app?.id ?? ''))
    .orderBy('app.name')
    .execute()
  const [first, second] = found
  if (first && !second) return first.id
  if (!first)
    throw new Failure(
      `${app ? `The app ${app.name} has` : 'There is'} no connection with this token.`,
    )
  const names = found.map(({ name }) => name).join(', ')
  throw new Failure(
    `Several apps have a connection with this token (${names}): name one with --app.`,
  )
}

/**
 * Finds a connection by its id.
 * @param facts `app`: it must be one of this app
 * @returns its id
 * @throws Failure when there is none
 */
export async function findConnectionById(
  db: Kysely<Tables>,
  facts: { id: string; app?: string | undefined },
): Promise<string> {
  const app = facts.app === undefined ? undefined : await findApp(db, facts.app)
  const found = await db
    .selectFrom('connection')
    .select('id')
    .where('id', '=', facts.id)
    .$if(app !== undefined, (query) => query.where('app_id', '=', app?.id ?? ''))
    .executeTakeFirst()
  if (found) return found.id
  throw new Failure(
    `${app ? `The app ${app.name} has` : 'There is'} no connection ${facts.id}: ` +
      '`connection list --app NAME` shows those of an app.',
  )
}
