import { sql } from 'kysely'
import { missingFrom } from '../../migrations/index.ts'
import { Unavailable } from '../limits/unavailable.ts'
import type { Database } from './database.ts'
import { hasState, isPoolerTimeout, isStandby, ServerIsStandby, SqlState } from './failures.ts'
import { compile } from './statements.ts'

export const serverStatement = compile(
  'server',
  'Reads version, role and migrations of the server, and the rights of the login.',
  sql`
    select current_setting('server_version'), pg_is_in_recovery(),
      not row_security_active(to_regclass('public.connection')),
      string_agg(name, ',' order by name)
    from public.kysely_migration`,
)

export const refreshesStatement = compile(
  'refreshes',
  'Counts connections of a random sample by the time since their last refresh.',
  sql`select refreshed, connections from sample_refreshes()`,
)

/** @throws Unavailable. If PostgreSQL denies a right, its error is the cause */
export async function readServer(db: Pick<Database, 'probe' | 'allowsStandby'>) {
  const rows = await db.probe(serverStatement, []).catch((error: unknown) => {
    if (hasState(error, SqlState.denied) || !hasState(error, SqlState.schemaBehind)) throw error
    return undefined
  })
  const [version, standby, seesAll, names] = rows?.shift() ?? []
  // Without a pooler, a standby rejects the connection (connect.ts).
  if (standby === 't' && !db.allowsStandby) throw new ServerIsStandby('the server is a standby')
  const applied = names?.split(',') ?? []
  return {
    /** Version of PostgreSQL; undefined if no migration was ever applied. */
    version,
    isStandby: standby === 't',
    /** True for a superuser, and for the owner of the tables. */
    seesAllRows: seesAll === 't',
    newest: applied.at(-1),
    missing: missingFrom(new Set(applied)),
  }
}

/** State of the database. Requests succeed only when it is `ready`. */
export type Readiness = 'ready' | 'unanswered' | 'standby' | 'schema behind' | 'denied'

export interface Check {
  readiness: Readiness
  /** Undefined if the server did not respond to this probe. */
  server?: Awaited<ReturnType<typeof readServer>>
}

/** Time for which a result is reused, in ms: at most four probes a second. */
const FRESH_MS = 250

/** Returns a function that checks the primary in less than a second. Concurrent callers share one probe. */
export function checkOf(db: Database): () => Promise<Check> {
  let last: Promise<Check> | undefined
  const forget = () => {
    last = undefined
  }
  const check = async (): Promise<Check> => {
    try {
      const server = await readServer(db)
      return { readiness: server.missing.length > 0 ? 'schema behind' : 'ready', server }
    } catch (error) {
      if (hasState(error, SqlState.denied)) return { readiness: 'denied' }
      if (isStandby(error)) return { readiness: 'standby' }
      // It may have waited for a lock, or behind requests, also in PgBouncer.
      const isUnsent = error instanceof Unavailable && !error.cause
      const isLate = isUnsent || isPoolerTimeout(error) || hasState(error, SqlState.locked)
      return { readiness: isLate && db.state().primary.responding ? 'ready' : 'unanswered' }
    }
  }
  return () => {
    last ??= check().finally(() => setTimeout(forget, FRESH_MS).unref())
    return last
  }
}
