import { randomInt } from 'node:crypto'
import type { Kysely } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import { findApp } from './apps.ts'

/** Refers to a connection by its id or its token. With `app`, it must belong to this app. */
export type ConnectionReference = ({ id: string } | { token: string }) & {
  app?: string | undefined
}

/**
 * Finds a connection.
 * @returns its id
 * @throws OperatorError when there is none
 */
export async function findConnection(
  db: Kysely<Tables>,
  reference: ConnectionReference,
): Promise<string> {
  const app = reference.app === undefined ? undefined : await findApp(db, reference.app)
  const hash = 'token' in reference ? tokenHash(reference.token) : undefined
  const id = 'id' in reference ? reference.id : connectionKey(tokenHash(reference.token))
  const connection = await db
    .selectFrom('connection')
    .select('id')
    .where('id', '=', id)
    .$if(hash !== undefined, (query) => query.where('token_hash', '=', hash ?? Buffer.alloc(0)))
    .$if(app !== undefined, (query) => query.where('app_id', '=', app?.id ?? ''))
    .executeTakeFirst()
  if (connection) return connection.id
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new OperatorError(
    'id' in reference
      ? `${none} ${id}: \`connection list --app NAME\` shows those of an app.`
      : `${none} with this token.`,
  )
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
// 131 bits: too many to guess from the id or the ETag, which are derived from the token.
const TOKEN_LENGTH = 22

/** Every character is equally likely and unpredictable. */
function newToken(): string {
  return Array.from({ length: TOKEN_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

export interface CreatedConnection {
  id: string
  /** A credential. It is shown once: the database has only its hash (contract item 21). */
  token: string
}

/**
 * Creates a connection of an app.
 * @param parameters without `token`, a new one is generated
 * @throws OperatorError when the app does not exist, or a connection with this key exists
 */
export async function createConnection(
  db: Kysely<Tables>,
  parameters: { app: string; token?: string | undefined; label?: string | undefined },
): Promise<CreatedConnection> {
  const app = await findApp(db, parameters.app)
  for (;;) {
    const token = parameters.token ?? newToken()
    const hash = tokenHash(token)
    const id = connectionKey(hash)
    const label = parameters.label ?? null
    const { numInsertedOrUpdatedRows } = await db
      .insertInto('connection')
      .values({ id, app_id: app.id, token_hash: hash, label })
      .onConflict((conflict) => conflict.column('id').doNothing())
      .executeTakeFirst()
    if (numInsertedOrUpdatedRows === 1n) return { id, token }
    // Different tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
    if (parameters.token !== undefined) {
      throw new OperatorError(
        'A connection with this token exists already: a token is unique in the whole database.',
      )
    }
  }
}

/** @throws OperatorError when the app does not exist */
export async function listConnections(db: Kysely<Tables>, appName: string) {
  const app = await findApp(db, appName)
  const rows = await db
    .selectFrom('connection')
    .where('app_id', '=', app.id)
    .selectAll()
    .orderBy('created_at')
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
