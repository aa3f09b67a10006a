import type { FastifyInstance } from 'fastify'
import { serviceUnavailable } from '../http/errors.ts'
import type { Database } from '../postgres/database.ts'
import { type Readiness, readinessOf } from '../postgres/readiness.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Set when the process is about to end: it still answers, and wants to be asked no more. */
    draining: boolean
  }
}

/**
 * What a supervisor asks: is the process alive, and is it able to answer? Neither needs a token, and
 * neither is in the access log. Both answer within a second, whatever the database does.
 */
export async function health(app: FastifyInstance, { db }: { db: Database }): Promise<void> {
  const readiness = readinessOf(db)
  const quiet = { logLevel: 'silent', schema: { hide: true } } as const
  app.get('/live', quiet, async () => ({ status: 'live' }))
  app.get('/ready', quiet, async () => {
    if (app.draining) throw serviceUnavailable('The service is shutting down.')
    const found = await readiness()
    if (found !== 'ready') throw serviceUnavailable(FAULTS[found])
    return { status: 'ready', waitingRequests: db.state().primary.waiting }
  })
}

const FAULTS: Record<Exclude<Readiness, 'ready'>, string> = {
  unanswered: 'The database does not answer, or a table is locked.',
  'schema behind': 'The schema of the database is behind: run `npm run operator -- migrate`.',
  overwhelmed: 'Next to no statement of the last second got an answer from the database.',
}
