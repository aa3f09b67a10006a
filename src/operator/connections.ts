import { randomInt } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { connectionKey, isConnectionKey, tokenHash } from '../postgres/tokens.ts'
import { findApp, type OperatorDatabase } from './database.ts'
import { isViolation, UsageError } from './errors.ts'

/**
 * Finds a connection by its id. With an app, only one of this app, also by its external id.
 * @returns undefined if there is none; the id itself, without a check, if there is no app
 */
export async function connectionId(
  run: (text: string, values: unknown[]) => Promise<{ id: string }[]>,
  appId: string | undefined,
  name: string,
): Promise<string | undefined> {
  const id = isConnectionKey(name) ? name : null
  if (appId === undefined) return id ?? undefined
  // An external id may look like the id of another connection: the id comes first.
  const text = `
    select id from connection where app_id = $1 and (external_id = $2 or id = $3::bigint)
    order by id is distinct from $3::bigint limit 1`
  return (await run(text, [appId, name, id]))[0]?.id
}

const DESCRIPTION = [
  'connection.id',
  'external_id as externalId',
  'label',
  'connection.created_at as createdAt',
  'changed_at as changedAt',
  'refreshed_at as refreshedAt',
  sql<number>`portfolio_transactions::float8`.as('portfolioTransactions'),
  sql<number>`account_transactions::float8`.as('accountTransactions'),
] as const

/**
 * Finds a connection by its id or, with the name of an app, also by its external id.
 * @throws OperatorError when there is none
 */
export async function findConnection(
  { db, pool }: OperatorDatabase,
  name: string,
  appName: string | undefined,
) {
  // The value may be a token, so the message must not contain it.
  if (appName === undefined && !isConnectionKey(name))
    throw new UsageError(
      'The id of a connection is a number: `connection list --app NAME` shows it. An external id needs --app.',
    )
  const app = appName === undefined ? undefined : await findApp(db, appName)
  const query = async (text: string, values: unknown[]) => (await pool.query(text, values)).rows
  const id = await connectionId(query, app?.id, name)
  const row = await db
    .selectFrom('connection')
    .innerJoin('app', 'app.id', 'connection.app_id')
    .select(['app.name as app', ...DESCRIPTION])
    .where('connection.id', '=', id ?? null)
    .executeTakeFirst()
  if (row) return row
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new OperatorError(`${none} ${name}: \`connection list --app NAME\` shows those of an app.`)
}

export interface NewConnection {
  token: string
  label: string | null
  externalId: string | null
}

/** A new connection, or the one that has its external id already. */
export type Created = { id: string; isTaken: boolean }

/**
 * Creates connections of an app in one transaction. The database has only the hashes of their tokens (contract 21).
 * @param onCreated writes the tokens before the commit: a token that nobody has read cannot be had again
 * @throws OperatorError when a connection with a token exists
 */
export async function createConnections(
  db: Kysely<Tables>,
  appId: string,
  connections: NewConnection[],
  onCreated: (created: Created[]) => Promise<void>,
): Promise<void> {
  const create = db.transaction().execute(async (transaction) => {
    // On Citus, no index keeps external ids unique. Every role could hold an advisory lock instead.
    await sql`select from app where id = ${appId} for no key update`.execute(transaction)
    const names = connections.map(({ externalId }) => externalId)
    const { rows } = await sql<{ id: string; name: string }>`
      select id, external_id as name from connection
      where app_id = ${appId} and external_id = any(${names}::text[])`.execute(transaction)
    const owners = new Map(rows.map(({ id, name }) => [name, id]))
    const added: (NewConnection & { id: string; hash: Buffer })[] = []
    const results = connections.map((connection): Created => {
      const { token, externalId } = connection
      const taken = externalId === null ? undefined : owners.get(externalId)
      if (taken !== undefined) return { id: taken, isTaken: true }
      const hash = tokenHash(token)
      const id = connectionKey(hash)
      if (externalId !== null) owners.set(externalId, id)
      added.push({ ...connection, id, hash })
      return { id, isTaken: false }
    })
    const column = (name: keyof (typeof added)[number]) => added.map((row) => row[name])
    await sql`
      insert into connection (id, app_id, token_hash, label, external_id)
      select id, ${appId}::uuid, hash, label, name
      from unnest(${column('id')}::bigint[], ${column('hash')}::bytea[], ${column('label')}::text[],
        ${column('externalId')}::text[]) as n (id, hash, label, name)`.execute(transaction)
    await onCreated(results)
  })
  await create.catch((error: unknown) => {
    // Two tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
    if (!isViolation(error, 'connection_pkey')) throw error
    throw new OperatorError(
      'A connection with this token exists already: a token is unique in the whole database.',
    )
  })
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
// 131 bits: a person with the id or the ETag cannot guess the token.
const TOKEN_LENGTH = 22

/** Every character is equally likely and unpredictable. */
export function newToken(): string {
  return Array.from({ length: TOKEN_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

export interface ConnectionFilter {
  after?: string | undefined
  limit?: number | undefined
  externalId?: string | undefined
  label?: string | undefined
  refreshedBefore?: Date | undefined
}

const PAGE = 1_000

/** Reads the connections of an app in pages, in the order of their ids. */
export async function* listConnections(
  db: Kysely<Tables>,
  appId: string,
  { limit = Number.MAX_SAFE_INTEGER, ...filter }: ConnectionFilter,
) {
  const { externalId, label, refreshedBefore } = filter
  let query = db
    .selectFrom('connection')
    .select(DESCRIPTION)
    .where('app_id', '=', appId)
    .orderBy('id')
  if (externalId !== undefined) query = query.where('external_id', '=', externalId)
  if (label !== undefined) query = query.where('label', '=', label)
  if (refreshedBefore !== undefined)
    query = query.where(sql<boolean>`coalesce(refreshed_at < ${refreshedBefore}, true)`)
  let { after } = filter
  for (let left = limit; left > 0; left -= PAGE) {
    const page = after === undefined ? query : query.where('id', '>', after)
    const rows = await page.limit(Math.min(left, PAGE)).execute()
    if (rows.length > 0) yield rows
    after = rows.at(-1)?.id
    if (rows.length < PAGE) return
  }
}

export function missingConnection(): OperatorError {
  return new OperatorError('The connection does not exist any more.')
}
