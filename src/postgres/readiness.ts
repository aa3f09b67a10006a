import { sql } from 'kysely'
import type { Database } from './database.ts'
import { isLocked, isTurnedAway } from './errors.ts'
import { missingMigrations } from './migrations.ts'
import { build, compile } from './statements.ts'

const facts = compile(
  'server facts',
  sql`${build.selectNoFrom([
    sql`current_setting('server_version')`.as('version'),
    build
      .selectFrom('kysely_migration')
      .select((eb) => eb.fn.max('name').as('name'))
      .as('newest_migration'),
  ])}`,
)

/** What the primary says of itself. */
export interface ServerFacts {
  /** PostgreSQL's version, e.g. `18.1`. */
  version: string
  /** The name of the last migration that ran, e.g. `0004-service-role`. */
  newestMigration: string
}

/** @throws DatabaseUnavailable */
export async function serverFacts(db: Pick<Database, 'probe'>): Promise<ServerFacts> {
  const [version, newestMigration] = (await db.probe(facts, [])).shift() ?? []
  return { version: String(version), newestMigration: String(newestMigration) }
}

/** Whether requests can be answered now, and if not, why. */
export type Readiness = 'ready' | 'unanswered' | 'schema behind' | 'overwhelmed'

/** Supervisors commonly wait one second for an answer. */
const WITHIN_MS = 900
/** An answer is good for so long: however many ask, the database is asked four times a second at most. */
const FRESH_MS = 250

/** What came of a look; `late` where nothing came of it in time. */
type Look = Exclude<Readiness, 'overwhelmed'> | 'late'

/**
 * A function that tells the readiness of a database, in less than a second also where the database says
 * nothing: who comes while one looks waits for the same answer. A look that is late is given up for a new
 * one, since the connection that it is stuck on may be dead where a new one would not be.
 */
export function readinessOf(db: Database): () => Promise<Readiness> {
  let last: Promise<Look> | undefined
  /** Whether the last look that ended met a lock. */
  let locked = false
  const look = async (): Promise<Look> => {
    try {
      const missing = await missingMigrations(db)
      locked = false
      return missing.length > 0 ? 'schema behind' : 'ready'
    } catch (error) {
      locked = isLocked(error)
      return isTurnedAway(error) ? 'late' : 'unanswered'
    }
  }
  return async () => {
    if (last === undefined) {
      last = inTime(look())
      const forget = () => {
        last = undefined
      }
      last.finally(() => setTimeout(forget, FRESH_MS).unref())
    }
    const found = await last
    const { queued, failing } = db.state().primary
    // In a pooler's queue, a look is late because of the requests before it, unless it is for a lock.
    const answering = found === 'ready' || (found === 'late' && queued && !locked)
    if (answering) return failing ? 'overwhelmed' : 'ready'
    return found === 'schema behind' ? found : 'unanswered'
  }
}

async function inTime(look: Promise<Look>): Promise<Look> {
  const late = Promise.withResolvers<Look>()
  const timer = setTimeout(() => late.resolve('late'), WITHIN_MS)
  return await Promise.race([look, late.promise]).finally(() => clearTimeout(timer))
}
