import { randomInt } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Tables } from '../database/tables.ts'
import { tokenHash } from '../database/token-hash.ts'
import { findApp } from './apps.ts'
import { isViolation } from './database-error.ts'
import { Failure } from './failure.ts'

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
