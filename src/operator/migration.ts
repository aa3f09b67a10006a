import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { migrateOnce } from '../database/migrate.ts'
import type { Tables } from '../database/tables.ts'
import { Failure } from './failure.ts'

const ATTEMPTS = 30
/**
 * Requests queue behind a migration that waits for its lock, and give up after a fifth of
 * STATEMENT_TIMEOUT_MS: half of that, by default.
 */
const LOCK_TIMEOUT_MS = 500
const PAUSE_MS = 1_000

/**
 * Runs the missing migrations, one after the other. A statement that waits for a lock makes all others
 * wait behind it, so it gives up soon, lets them pass, and tries again a little later.
 * @param onWait is told in a sentence when that happens
 * @returns the names of the migrations that ran
 * @throws Failure that tells what an administrator must run, where the operator's role may not do it
 */
export async function migrate(
  db: Kysely<Tables>,
  onWait: (sentence: string) => void,
): Promise<string[]> {
  return await db.connection().execute(async (session) => {
    await sql`set lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(session)
    const applied: string[] = []
    for (;;) {
      const name = await patiently(session, onWait)
      if (name === undefined) return applied
      applied.push(name)
    }
  })
}

async function patiently(
  session: Kysely<Tables>,
  onWait: (sentence: string) => void,
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await migrateOnce(session)
    } catch (error) {
      if (mayNotCreateRole(error)) throw withoutCreateRole()
      if (!isLockTimeout(error) || attempt === ATTEMPTS) throw error
      onWait(`Another session holds a lock that a migration needs; trying again (${attempt}).`)
      await sleep(PAUSE_MS)
    }
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

function mayNotCreateRole(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.message.includes('denied to create role')
}

function withoutCreateRole(): Failure {
  return new Failure(
    'A migration makes the role that the service connects as, and this role may make none: ' +
      'let an administrator run `create role investment_service;`, and try again.',
  )
}
