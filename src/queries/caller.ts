import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build, compile, parameter } from '../postgres/statements.ts'

/** No token of ours has that hash, or it was revoked; or no app has that client id. */
export class InvalidToken extends Error {
  override name = 'InvalidToken'
}

/** The token was valid once. */
export class ExpiredToken extends Error {
  override name = 'ExpiredToken'
}

/** The app has no connection with that token, whoever else may have one (section 7). */
export class ConnectionNotFound extends Error {
  override name = 'ConnectionNotFound'
  readonly appId: string

  constructor(appId: string) {
    super()
    this.appId = appId
  }
}

/**
 * How a caller is known: by the SHA-256 of an app token of ours, or by the client id in a token that
 * an identity provider signed and that was verified before.
 */
export type Caller = { tokenHash: Buffer } | { clientId: string }

export type CallerKind = 'tokenHash' | 'clientId'

export function kindOf(caller: Caller): CallerKind {
  return 'tokenHash' in caller ? 'tokenHash' : 'clientId'
}

/** One of each, for every way in which a caller can be known. */
export function forEachCaller<T>(make: (kind: CallerKind) => T): Record<CallerKind, T> {
  return { tokenHash: make('tokenHash'), clientId: make('clientId') }
}

/** The value of parameter $1 of every statement. */
export function callerParameter(caller: Caller): string | Buffer {
  return 'tokenHash' in caller ? caller.tokenHash : caller.clientId
}

/**
 * The first step of every statement: who is calling? One row { app_id, expired }, or none for a token
 * that is unknown or revoked. `app_id` is what set_config() returned, so that the next step, which needs
 * it as its key, cannot run before row-level security has been told of it.
 */
export function callingApp(kind: CallerKind) {
  return kind === 'tokenHash' ? appOfToken() : appOfClientId()
}

/** A statement may run behind another one in the same transaction (database/batches.ts). */
const nothingEarned = (['app_id', 'connection_id'] as const).map((name) =>
  sql<string>`set_config(${sql.lit(`service.${name}`)}, '', true)`.as(`no_${name}`),
)

function appOfToken() {
  const hash = sql<string>`encode(${parameter(1, 'bytea')}, 'hex')`
  const given = build.selectNoFrom([
    sql<string>`set_config('service.token_hash', ${hash}, true)`.as('token_hash'),
    ...nothingEarned,
  ])
  return build
    .selectFrom(given.as('given'))
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('app_token as t')
          .where('t.token_hash', '=', sql<Buffer>`decode(given.token_hash, 'hex')`)
          .where('t.revoked_at', 'is', null)
          .select([
            sql<string>`set_config('service.app_id', t.app_id::text, true)::uuid`.as('app_id'),
            sql<boolean>`coalesce(t.expires_at <= now(), false)`.as('expired'),
          ])
          .as('app'),
      (join) => join.onTrue(),
    )
    .select(['app.app_id', 'app.expired'])
}

function appOfClientId() {
  const given = build.selectNoFrom([
    sql<string>`set_config('service.client_id', ${parameter(1, 'text')}, true)`.as('client_id'),
    ...nothingEarned,
  ])
  return build
    .selectFrom(given.as('given'))
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('app as a')
          .where('a.client_id', '=', sql<string>`given.client_id`)
          .select([
            sql<string>`set_config('service.app_id', a.id::text, true)::uuid`.as('app_id'),
            // The identity provider's token carries its own expiry, checked with its signature.
            sql<boolean>`false`.as('expired'),
          ])
          .as('app'),
      (join) => join.onTrue(),
    )
    .select(['app.app_id', 'app.expired'])
}

const statements = forEachCaller((kind) => compile(`caller by ${kind}`, sql`${callingApp(kind)}`))

/**
 * Whether the caller is who it says, for a request that is at fault in other ways: those are not told to
 * a stranger (contract 1).
 * @returns the id of the app
 * @throws InvalidToken or ExpiredToken
 */
export async function confirmCaller(db: Database, caller: Caller): Promise<string> {
  const rows = await db.read(statements[kindOf(caller)], [callerParameter(caller)])
  const [appId, expired] = rows.shift() ?? []
  if (typeof appId !== 'string') throw new InvalidToken()
  if (expired === 't') throw new ExpiredToken()
  return appId
}
