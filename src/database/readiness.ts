import type { Database } from './database.ts'
import { missingMigrations } from './schema-state.ts'

/** Whether requests can be answered now, and if not, why. */
export type Readiness = 'ready' | 'unanswered' | 'schema behind' | 'overwhelmed'

/** Supervisors commonly wait one second for an answer. */
const WITHIN_MS = 900
/** An answer is good for so long: however many ask, the database is asked four times a second at most. */
const FRESH_MS = 250

/**
 * A function that tells the readiness of a database, in less than a second also where the database says
 * nothing: who comes while one looks waits for the same answer. A look that is late is given up for a new
 * one, since the connection that it is stuck on may be dead where a new one would not be.
 */
export function readinessOf(db: Database): () => Promise<Readiness> {
  let last: Promise<Readiness> | undefined
  const look = async (): Promise<Readiness> => {
    const missing = await missingMigrations(db).catch(() => undefined)
    if (missing === undefined) return 'unanswered'
    if (missing.length > 0) return 'schema behind'
    return 'ready'
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
    return found === 'ready' && db.state().primary.failing ? 'overwhelmed' : found
  }
}

async function inTime(look: Promise<Readiness>): Promise<Readiness> {
  const late = Promise.withResolvers<Readiness>()
  const timer = setTimeout(() => late.resolve('unanswered'), WITHIN_MS)
  return await Promise.race([look, late.promise]).finally(() => clearTimeout(timer))
}
