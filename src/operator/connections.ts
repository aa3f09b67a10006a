import { randomInt } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Tables } from '../postgres/tables.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { findApp } from './apps.ts'
import { Failure, isViolation } from './errors.ts'

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

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const LENGTH = 10

export interface CreatedConnection {
  id: string
  /** A credential, shown now and never again: only its hash is stored (contract item 21). */
  token: string
}

/**
 * Creates a connection of an app.
 * @param facts `token` absent: a new one is made
 * @throws Failure when there is no such app, or it has a connection with this token
 */
export async function createConnection(
  db: Kysely<Tables>,
  facts: { app: string; token?: string | undefined; label?: string | undefined },
): Promise<CreatedConnection> {
  const app = await findApp(db, facts.app)
  const token = facts.token ?? newToken()
  try {
    const { id } = await db
      .insertInto('connection')
      .values({ app_id: app.id, token_hash: tokenHash(token), label: facts.label ?? null })
      .returning('id')
      .executeTakeFirstOrThrow()
    return { id, token }
  } catch (error) {
    if (!isViolation(error, 'connection_app_id_token_hash_key')) throw error
    throw new Failure(`The app ${app.name} has a connection with this token already.`)
  }
}

/** Every character is as likely as any other, and none can be foreseen. */
function newToken(): string {
  return Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/** @throws Failure when there is no such app */
export async function listConnections(db: Kysely<Tables>, appName: string) {
  const app = await findApp(db, appName)
  const rows = await db
    .selectFrom('connection')
    .where('app_id', '=', app.id)
    .selectAll()
    .orderBy('id')
    .execute()
  return rows.map((row) => ({
    id: row.id,
    label: row.label,
    createdAt: row.created_at,
    changedAt: row.changed_at,
    portfolioTransactions: Number(row.portfolio_transactions),
    accountTransactions: Number(row.account_transactions),
  }))
}
