import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { ServiceState } from '../http/request-context.ts'
import type { Database } from '../postgres/database.ts'
import type { Check, Readiness } from '../postgres/readiness.ts'
import { problem } from '../schemas/problem.ts'

/** Adds liveness and readiness to a server. Both respond within a second, also while the database hangs. */
export function health(
  db: Database,
  check: () => Promise<Check>,
  state: ServiceState,
  log: FastifyBaseLogger,
) {
  let last: Readiness = 'ready'
  const ready = async () => {
    if (state.draining)
      throw problem('service_unavailable', { detail: 'The service is shutting down.' })
    const { readiness: found } = await check()
    if (found !== last) {
      if (found === 'ready') log.info('ready')
      else log.warn({ reason: NOT_READY[found] }, 'not ready')
      last = found
    }
    if (found !== 'ready') throw problem('service_unavailable', { detail: NOT_READY[found] })
    return { status: 'ready', waitingRequests: db.state().primary.waiting }
  }
  return async (app: FastifyInstance) => {
    const probe = {
      logLevel: 'silent',
      schema: { hide: true },
      config: { isProbe: true },
    } as const
    app.get('/live', probe, async () => ({ status: 'live' }))
    app.get('/ready', probe, ready)
  }
}

const NOT_READY: Record<Exclude<Readiness, 'ready'>, string> = {
  unanswered: 'The database does not respond.',
  standby: 'The database is a standby: its data may be old.',
  'schema behind': 'The schema of the database is outdated: run `operator migrate`.',
  denied: 'PostgreSQL denies the service a right that it needs: see the log of PostgreSQL.',
  unreadable: 'PostgreSQL refuses to read every list: see the log of the service.',
}
