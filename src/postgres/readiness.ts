import { sql } from 'kysely'
import { Unavailable } from '../limits/unavailable.ts'
import type { Database } from './database.ts'
import { isDenied, isLocked, isPoolerTimeout, isStandby } from './failures.ts'
import { missingMigrations } from './migrations.ts'
import { compile } from './statements.ts'

/** State of the database. Requests succeed only when it is `ready`. */
export type Readiness = 'ready' | 'unanswered' | 'standby' | 'schema behind' | 'denied'

/** Time for which a result is reused, in ms: at most four probes a second. */
const FRESH_MS = 250

/** Returns a function that finds the readiness in less than a second. Concurrent callers share one probe. */
export function readinessOf(db: Database): () => Promise<Readiness> {
  let last: Promise<Readiness> | undefined
  const forget = () => {
    last = undefined
  }
  const probe = async (): Promise<Readiness> => {
    try {
      const missing = await missingMigrations(db)
      return missing.length > 0 ? 'schema behind' : 'ready'
    } catch (error) {
      if (error instanceof Unavailable && isDenied(error.cause)) return 'denied'
      if (isStandby(error)) return 'standby'
      // It may have waited for a lock, or behind requests, also in PgBouncer.
      const isUnsent = error instanceof Unavailable && !error.cause
      const isLate = isUnsent || isPoolerTimeout(error) || isLocked(error)
      return isLate && db.state().primary.responding ? 'ready' : 'unanswered'
    }
  }
  return () => {
    last ??= probe().finally(() => setTimeout(forget, FRESH_MS).unref())
    return last
  }
}

export const serverInfoStatement = compile(
  'server info',
  'Reads the version of PostgreSQL, its role and the newest migration.',
  sql`
    select current_setting('server_version'), pg_is_in_recovery(), max(name)
    from public.kysely_migration`,
)

export const refreshesStatement = compile(
  'refreshes',
  'Counts connections of a random sample by the time since their last refresh.',
  sql`select refreshed, connections from sample_refreshes()`,
)

export const unrestrictedRole = compile(
  'unrestricted role',
  'Checks if row-level security does not apply to the role.',
  sql`
    select rolsuper or rolbypassrls or pg_has_role(current_user, (
        select relowner from pg_class where oid = to_regclass('public.connection')), 'usage')
    from pg_roles where rolname = current_user`,
)

/** True for a superuser, and for the owner of the tables. @throws Unavailable */
export async function seesAllRows(db: Pick<Database, 'probe'>): Promise<boolean> {
  const [found] = (await db.probe(unrestrictedRole, [])).shift() ?? []
  return found === 't'
}
