import { randomBytes } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import type { Tables } from '../postgres/tables.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { findApp } from './apps.ts'

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }
const LONGEST_DAYS = 36_500

/**
 * Parses a number and a unit: `90d`, `12h`, `30m`.
 * @returns seconds; undefined for other notations, zero, and more than 36,500 days
 */
export function parseDuration(text: string): number | undefined {
  const [, count = '', unit = ''] = /^([0-9]{1,10})([smhdw])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit as keyof typeof SECONDS] ?? 0)
  return seconds > 0 && seconds <= LONGEST_DAYS * SECONDS.d ? seconds : undefined
}

/** Identifies a token for secret scanners. */
const PREFIX = 'idq_'

export interface IssuedToken {
  id: string
  /** It is shown once: the database has only its hash (contract item 20). */
  token: string
  expiresAt: Date | null
}

/**
 * Issues a bearer token to an app.
 * @param parameters without `ttlSeconds`, the token does not expire
 * @throws OperatorError when the app does not exist
 */
export async function issueToken(
  db: Kysely<Tables>,
  parameters: { app: string; ttlSeconds?: number | undefined },
): Promise<IssuedToken> {
  const app = await findApp(db, parameters.app)
  const token = PREFIX + randomBytes(32).toString('base64url')
  const { id, expiresAt } = await db
    .insertInto('app_token')
    .values({
      app_id: app.id,
      token_hash: tokenHash(token),
      expires_at: sql`now() + make_interval(secs => ${parameters.ttlSeconds ?? null})`,
    })
    .returning(['id', 'expires_at as expiresAt'])
    .executeTakeFirstOrThrow()
  return { id, token, expiresAt }
}

/** @throws OperatorError when the app does not exist */
export async function listTokens(db: Kysely<Tables>, appName: string) {
  const app = await findApp(db, appName)
  return await db
    .selectFrom('app_token')
    .where('app_id', '=', app.id)
    .select([
      'id',
      'created_at as createdAt',
      'expires_at as expiresAt',
      'revoked_at as revokedAt',
      sql<'valid' | 'expired' | 'revoked'>`case
        when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired'
        else 'valid' end`.as('status'),
    ])
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/**
 * Revokes a token immediately and permanently. A revoked token keeps its time of revocation.
 * @throws OperatorError when the token does not exist
 */
export async function revokeToken(db: Kysely<Tables>, id: string) {
  const revoked = await db
    .updateTable('app_token')
    .set({ revoked_at: sql`coalesce(revoked_at, now())` })
    .where('id', '=', id)
    .returning(['id', 'revoked_at as revokedAt'])
    .executeTakeFirst()
  if (revoked) return revoked
  throw new OperatorError(
    `There is no token ${id}: \`token list --app NAME\` shows those of an app.`,
  )
}
