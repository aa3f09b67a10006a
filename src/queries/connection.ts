import { type RawBuilder, sql } from 'kysely'
import { type Caller, RequestContext } from '../limits/context.ts'
import type { Database } from '../postgres/database.ts'
import { build, compile, parameter } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import { ProblemError, problem } from '../schemas/problem.ts'
import { type AuthMethod, callingApp, forEachAuthMethod } from './caller.ts'

/** $3 of every statement: the connection key. It restricts every table that has rows of connections. */
export const keyParameter = parameter<string>(3, 'bigint')

/** First row of every response: app, connection, data version and number of rows. */
export interface Lookup {
  appId: string
  /** Version of the connection's rows: `<changes>.<microseconds since 1970>`. */
  version: string
  /** Seconds since 1970 of the last refresh. */
  refreshed: string | null
  totalItems: number
  extra: (string | null)[]
}

export const LOOKUP_COLUMNS = [
  'app_id',
  'expired',
  'connection_id',
  'version',
  'refreshed',
  'total_items',
] as const

export type LookupColumns = Record<(typeof LOOKUP_COLUMNS)[number], unknown>

/**
 * Selects the calling app and its connection. $2 is the hash of the connection token, $3 the connection
 * key. A known caller gets one row, with nulls if the app has no such connection. A token of another
 * app and an unknown token give the same result (contract 18).
 */
export function connectionOfApp(method: AuthMethod) {
  const tokenHash = parameter<Buffer>(2, 'bytea')
  // The lookup uses app_id of the same row, so it runs after set_config().
  const caller = build
    .selectFrom(callingApp(method).as('app'))
    .select([
      'app.app_id',
      'app.expired',
      sql<string>`set_config('service.connection_hash', encode(${tokenHash}, 'hex'), true)`.as(
        'connection_hash',
      ),
    ])
  return build.selectFrom(caller.as('caller')).leftJoinLateral(
    (eb) =>
      eb
        .selectFrom('connection as c')
        .where('c.id', '=', keyParameter)
        .whereRef('c.app_id', '=', 'caller.app_id')
        .where('c.token_hash', '=', tokenHash)
        .where('caller.expired', '=', sql.lit(false))
        .select([
          sql<string>`set_config('service.connection_id', c.id::text, true)::bigint`.as('id'),
          'c.portfolio_transactions',
          'c.account_transactions',
          'c.change_horizon',
          dataVersionOf('c').as('version'),
          sql<string | null>`floor(extract(epoch from c.refreshed_at))::bigint`.as('refreshed'),
        ])
        .as('c'),
    (join) => join.onTrue(),
  )
}

/** Data version: `<changes>.<microseconds since 1970>`. The time of the last change keeps it unique after a restore. */
export const dataVersionOf = (table: 'c' | 'v') => sql<string>`
  ${sql.ref(`${table}.data_version`)} || '.' ||
    (extract(epoch from ${sql.ref(`${table}.changed_at`)}) * 1000000)::bigint`

/** Data version without its time: it counts the changes of the connection. */
export const changesOf = ({ version }: Lookup): string => version.slice(0, version.indexOf('.'))

/** @param totalItems number of rows; null without pages, or if only the lookup is read */
export function lookupColumns(totalItems: RawBuilder<string | null>) {
  return [
    'caller.app_id',
    'caller.expired',
    'c.id as connection_id',
    'c.version',
    'c.refreshed',
    totalItems.as('total_items'),
  ] as const
}

/** Compiles statements that read only the lookup. See lookupColumns(). */
export function compileLookups(title: string, purpose: string, total: RawBuilder<string | null>) {
  return forEachAuthMethod((method) => ({
    ...compile(
      `${title} by ${method}`,
      purpose,
      sql`${connectionOfApp(method).select(lookupColumns(total))}`,
    ),
    singleRow: true,
  }))
}

export const lookupStatements = compileLookups('lookup', 'Reads the data version.', sql`null`)

/**
 * Takes the lookup from the rows of a response.
 * @param context records the app that the lookup confirms
 * @param extraColumns number of columns after LOOKUP_COLUMNS
 * @throws ProblemError 401 or 404
 */
export function takeLookup(
  rows: { shift(): (string | null)[] | undefined },
  context: Pick<RequestContext, 'confirm'>,
  extraColumns = 0,
): Lookup {
  const fields = rows.shift()
  if (fields === undefined) throw problem('invalid_token')
  const [appId, expired, connectionId, version, refreshed = null, totalItems] = fields
  if (typeof appId !== 'string') throw new Error('the first row of a response is not its lookup')
  if (expired === 't') throw problem('expired_token')
  context.confirm(appId)
  if (connectionId === null || typeof version !== 'string') throw problem('connection_not_found')
  const extra = fields.slice(LOOKUP_COLUMNS.length, LOOKUP_COLUMNS.length + extraColumns)
  return { appId, version, refreshed, totalItems: Number(totalItems ?? 0), extra }
}

/**
 * Authenticates a caller that gets no data: with a 400 or a 429, or before its app is known. It also reads after the
 * client has disconnected, because that request counts in the quota of its app.
 * @param hash SHA-256 of the connection token
 * @throws Unavailable, or ProblemError 401
 */
export async function authenticate(
  db: Pick<Database, 'read'>,
  { method, credential }: Caller,
  hash: Buffer,
  context: RequestContext,
): Promise<void> {
  const keys = [credential, hash, connectionKey(hash)]
  const own = new RequestContext(context.limits, context.tenant)
  const rows = await db.read(lookupStatements[method], keys, own)
  try {
    takeLookup(rows, context)
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === 'connection_not_found')) throw error
  }
}
