import { hash } from 'node:crypto'
import { sql } from 'kysely'
import type { ReadContext } from '../limits/context.ts'
import type { Database } from '../postgres/database.ts'
import { compile, parameter, type Statement } from '../postgres/statements.ts'
import { type ProblemError, problem } from '../schemas/problem.ts'

export type AuthMethod = 'tokenHash' | 'clientId'

export interface Caller {
  method: AuthMethod
  /** $1 of each statement: the SHA-256 of the app token as a bytea, or the verified client id. */
  credential: string
  key: string
}

export function callerOfToken(token: string): Caller {
  const key = hash('sha256', token, 'hex')
  return { method: 'tokenHash', credential: `\\x${key}`, key }
}

export function callerOfClient(clientId: string): Caller {
  return { method: 'clientId', credential: clientId, key: `client ${clientId}` }
}

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

/**
 * Confirms several callers. $1 has the hashes of tokens as hexadecimal digits, $2 the client ids. A row is
 * { key, app_id, expired }. Row-level security compares with one setting, so the subqueries set it for each
 * credential before they look it up.
 */
export const callersStatement: Statement = {
  ...compile(
    'callers',
    'Confirms the callers that wait.',
    sql`
      select given.token_hash, app.app_id, app.expired
      from (select set_config('service.token_hash', hash, true) as token_hash
        from json_array_elements_text(${parameter(1, 'json')}) as hash) as given
      join lateral (
        select set_config('service.app_id', t.app_id::text, true) as app_id,
          coalesce(t.expires_at <= now(), false) as expired
        from app_token t
        where t.token_hash = decode(given.token_hash, 'hex') and t.revoked_at is null
      ) as app on true
      union all
      select 'client ' || given.client_id, app.app_id, false
      from (select set_config('service.client_id', id, true) as client_id
        from json_array_elements_text(${parameter(2, 'json')}) as id) as given
      join lateral (
        select set_config('service.app_id', a.id::text, true) as app_id
        from app a where a.client_id = given.client_id
      ) as app on true`,
  ),
  singleRow: true,
}

/** Authenticates callers without reading data. @returns the app of each known caller by its key, or ProblemError */
export async function confirmCallers(
  db: Pick<Database, 'read'>,
  callers: Caller[],
  context: ReadContext,
): Promise<Map<string, string | ProblemError>> {
  const hashes = callers.filter(({ method }) => method === 'tokenHash').map(({ key }) => key)
  const ids = callers.filter(({ method }) => method === 'clientId').map((each) => each.credential)
  const rows = await db.read(
    callersStatement,
    [JSON.stringify(hashes), JSON.stringify(ids)],
    context,
  )
  const apps = new Map<string, string | ProblemError>()
  for (let row = rows.shift(); row; row = rows.shift()) {
    const [key, appId, expired] = row
    apps.set(String(key), expired === 't' ? problem('expired_token') : String(appId))
  }
  return apps
}
