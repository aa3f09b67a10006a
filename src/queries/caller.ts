import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import type { ReadingRequest } from '../postgres/server.ts'
import { compile, parameter, type Statement } from '../postgres/statements.ts'

/** The app token is unknown or revoked, or no app has the client id. */
export class InvalidToken extends Error {
  override name = 'InvalidToken'
}

/** The app token has expired. */
export class ExpiredToken extends Error {
  override name = 'ExpiredToken'
}

/** A request of a known app cannot be fulfilled. */
export class RequestOfAppError extends Error {
  readonly appId: string

  constructor(appId: string) {
    super()
    this.appId = appId
  }
}

/** The app has no connection with this token (section 7). Another app may have one. */
export class ConnectionNotFound extends RequestOfAppError {
  override name = 'ConnectionNotFound'
}

/** The changes since a cursor are no longer known, or the restored database is older than the cursor. */
export class CursorExpired extends RequestOfAppError {
  override name = 'CursorExpired'
}

/** The connection no longer has the data version that the request expects. */
export class DataChanged extends RequestOfAppError {
  override name = 'DataChanged'
}

/**
 * Credentials of the calling app: the SHA-256 of its token, or the verified client id of the identity
 * provider.
 */
export type Caller = { tokenHash: Buffer } | { clientId: string }

export type AuthMethod = 'tokenHash' | 'clientId'

export function authMethodOf(caller: Caller): AuthMethod {
  return 'tokenHash' in caller ? 'tokenHash' : 'clientId'
}

/** Calls `make` for each authentication method. */
export function forEachAuthMethod<T>(make: (method: AuthMethod) => T): Record<AuthMethod, T> {
  return { tokenHash: make('tokenHash'), clientId: make('clientId') }
}

/** Key for a cache of callers. */
export function callerKey(caller: Caller): string {
  return 'tokenHash' in caller ? caller.tokenHash.toString('latin1') : `client ${caller.clientId}`
}

/** Value of $1 of every statement. */
export function callerParameter(caller: Caller): string | Buffer {
  return 'tokenHash' in caller ? caller.tokenHash : caller.clientId
}

/**
 * Selects the calling app: one row { app_id, expired }, or none if the credentials are unknown or
 * revoked. `app_id` is the result of set_config(), so every lookup by it runs after the setting of
 * row-level security.
 */
export function callingApp(method: AuthMethod) {
  return method === 'tokenHash' ? appOfToken : appOfClientId
}

type CallingApp = { app_id: string; expired: boolean }

const appOfToken = sql<CallingApp>`(
  select app.app_id, app.expired
  from (select set_config('service.token_hash', encode(${parameter(1, 'bytea')}, 'hex'), true)
    as token_hash) as given
  join lateral (
    select set_config('service.app_id', t.app_id::text, true)::uuid as app_id,
      coalesce(t.expires_at <= now(), false) as expired
    from app_token t
    where t.token_hash = decode(given.token_hash, 'hex') and t.revoked_at is null
  ) as app on true)`

// The identity provider's token has its own expiry, which was verified with the signature.
const appOfClientId = sql<CallingApp>`(
  select app.app_id, app.expired
  from (select set_config('service.client_id', ${parameter(1, 'text')}, true) as client_id) as given
  join lateral (
    select set_config('service.app_id', a.id::text, true)::uuid as app_id, false as expired
    from app a where a.client_id = given.client_id
  ) as app on true)`

export const callerStatements: Record<AuthMethod, Statement> = forEachAuthMethod((method) =>
  compile(`caller by ${method}`, sql`${callingApp(method)}`),
)

/**
 * Authenticates the caller of a request without reading its data.
 * @returns the id of the app
 * @throws InvalidToken or ExpiredToken
 */
export async function confirmCaller(
  db: Database,
  caller: Caller,
  request: ReadingRequest,
): Promise<string> {
  const statement = callerStatements[authMethodOf(caller)]
  const rows = await db.read(statement, [callerParameter(caller)], undefined, request)
  const [appId, expired] = rows.shift() ?? []
  if (typeof appId !== 'string') throw new InvalidToken()
  if (expired === 't') throw new ExpiredToken()
  return appId
}
