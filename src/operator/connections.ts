import { randomInt } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Tables } from '../postgres/tables.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import { findApp } from './apps.ts'
import { Failure } from './errors.ts'

/**
 * Finds a connection by its token, which is unique in the database.
 * @param parameters `app`: the connection must belong to this app
 * @returns its id
 * @throws Failure when there is none
 */
export async function findConnection(
  db: Kysely<Tables>,
  { token, app: appName }: { token: string; app?: string | undefined },
): Promise<string> {
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const hash = tokenHash(token)
  const connection = await db
    .selectFrom('connection')
    .select('id')
    .where('id', '=', connectionKey(hash))
    .where('token_hash', '=', hash)
    .$if(app !== undefined, (query) => query.where('app_id', '=', app?.id ?? ''))
    .executeTakeFirst()
  if (connection) return connection.id
  const owner = app ? `The app ${app.name} has` : 'There is'
  throw new Failure(`${owner} no connection with this token.`)
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
/** 22 of 62 characters are 131 bits: the id and the ETag, which follow from a token, do not help to guess it. */
const TOKEN_LENGTH = 22

export interface CreatedConnection {
  id: string
  /** A credential. It is shown once: the database has only its hash (contract item 21). */
  token: string
}

/**
 * Creates a connection of an app.
 * @param parameters `token` absent: a new one is generated
 * @throws Failure when the app does not exist, or a connection with this key exists
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
    if (parameters.token !== undefined) throw tokenTaken()
  }
}

/** Two tokens may also share their key, the first 8 bytes of the hash; that is one in 2^64. */
function tokenTaken(): Failure {
  return new Failure(
    'A connection with this token exists already: a token is unique in the whole database.',
  )
}

/** Every character is equally likely and unpredictable. */
function newToken(): string {
  return Array.from({ length: TOKEN_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/** @throws Failure when there is no such app */
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
