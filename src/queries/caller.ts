import { sql } from 'kysely'
import type { Caller } from '../limits/context.ts'
import { parameter } from '../postgres/statements.ts'

export type AuthMethod = Caller['method']

export function forEachAuthMethod<T>(make: (method: AuthMethod) => T): Record<AuthMethod, T> {
  return { tokenHash: make('tokenHash'), clientId: make('clientId') }
}

/**
 * Selects the calling app: one row { app_id, expired }, or none if the credentials are unknown or revoked. `app_id` is
 * the result of set_config(), so every lookup by it runs after the setting of row-level security.
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
