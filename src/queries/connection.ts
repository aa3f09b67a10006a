import { type Expression, type RawBuilder, sql } from 'kysely'
import { build, type CompiledStatement, compile } from '../postgres/statements.ts'
import { p } from './parameters.ts'

/** Credentials of a caller, as a statement reads them. */
export interface Caller {
  method: 'tokenHash' | 'clientId'
  /** SHA-256 of the app token as a bytea, or the verified client id. */
  credential: string
  /** Identity of the credentials. */
  key: string
}

export type AuthMethod = Caller['method']

/** Columns of the first row of every response, in their order, and their types in PostgreSQL. */
export const LOOKUP_COLUMNS = {
  app_id: 'uuid',
  expired: 'boolean',
  connection_id: 'bigint',
  version: 'text',
  refreshed: 'bigint',
  total_items: 'bigint',
} as const

export type LookupColumns = Record<keyof typeof LOOKUP_COLUMNS, unknown>

type CallingApp = { app_id: string; expired: boolean }

/** Selects the calling app by its credential. `app_id` comes from set_config(), so each lookup by it runs after that. */
const callingApp: Record<AuthMethod, RawBuilder<CallingApp>> = {
  tokenHash: sql`(
    select app.app_id, app.expired
    from (select set_config('service.token_hash', encode(${p.tokenHash}, 'hex'), true)
      as token_hash) as given
    join lateral (
      select set_config('service.app_id', t.app_id::text, true)::uuid as app_id,
        coalesce(t.expires_at <= now(), false) as expired
      from app_token t
      where t.token_hash = decode(given.token_hash, 'hex') and t.revoked_at is null
    ) as app on true)`,
  // The identity provider's token has its own expiry, which was verified with the signature.
  clientId: sql`(
    select app.app_id, app.expired
    from (select set_config('service.client_id', ${p.clientId}, true) as client_id) as given
    join lateral (
      select set_config('service.app_id', a.id::text, true)::uuid as app_id, false as expired
      from app a where a.client_id = given.client_id
    ) as app on true)`,
}

/** Selects the calling app and its connection, by the hash of its token. Its columns are null without one. */
export function connectionOfApp(method: AuthMethod) {
  // The lookup uses app_id of the same row, so it runs after set_config().
  const caller = build
    .selectFrom(callingApp[method].as('app'))
    .select([
      'app.app_id',
      'app.expired',
      sql<string>`set_config('service.connection_hash', encode(${p.connectionHash}, 'hex'), true)`.as(
        'connection_hash',
      ),
    ])
  return build.selectFrom(caller.as('caller')).leftJoinLateral(
    (eb) =>
      eb
        .selectFrom('connection as c')
        .where('c.id', '=', p.connectionKey)
        .whereRef('c.app_id', '=', 'caller.app_id')
        .where('c.token_hash', '=', p.connectionHash)
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

/** Number of all rows of a list. */
export function totalOfAll(table: string): RawBuilder<string> {
  return sql.ref(`c.${table}s`)
}

/** @param totalItems number of rows; null without pages */
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

/** Compiles a statement for each kind of credential. */
export function compileForCallers(
  title: string,
  purpose: string,
  select: (method: AuthMethod) => Expression<unknown>,
  { singleRow = false } = {},
): Record<AuthMethod, CompiledStatement> {
  const by = (method: AuthMethod) => {
    return { ...compile(`${title} by ${method}`, purpose, select(method)), singleRow }
  }
  return { tokenHash: by('tokenHash'), clientId: by('clientId') }
}
