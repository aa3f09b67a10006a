import type { FastifyInstance } from 'fastify'
import { Gauge, Histogram, type Registry } from 'prom-client'
import type { Limits } from '../limits/limits.ts'
import type { Database } from '../postgres/database.ts'
import { type Check, refreshesStatement } from '../postgres/readiness.ts'
import { DURATION_BUCKETS } from './http-metrics.ts'

/** Maximum age of the sample of refreshes, in ms. It reads 5,000 rows. */
const REFRESHES_MS = 60_000

interface Sources {
  db: Database
  check: () => Promise<Check>
  limits: Limits
}

/** Registers metrics of pools and servers. @returns a function that reads them for each request of Prometheus */
export function databaseMetrics(
  app: FastifyInstance,
  registry: Registry,
  { db, check, limits: { memory } }: Sources,
): () => Promise<void> {
  const durations = new Histogram({
    name: 'database_read_duration_seconds',
    help: 'Durations of reads, including the wait for a connection. result is success or error.',
    labelNames: ['statement', 'result'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  })
  app.onReadEnd(({ statement, durationMs, error }) =>
    durations.observe({ statement, result: error ? 'error' : 'success' }, durationMs / 1000),
  )
  const gauge = (name: string, help: string, ...labelNames: string[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })
  const up = gauge('database_up', '1 if the primary responded to the last probe.')
  const standbys = gauge('database_standby', '1 if DATABASE_URL leads to a standby.')
  const info = gauge('database_info', 'Always 1: version of PostgreSQL on the primary.', 'version')
  const sampled = gauge(
    'connections_sampled',
    'Connections of a random sample of 5,000, once a minute, by the time since their last refresh: less than 1d, 2d, 7d, older, or never.',
    'refreshed',
  )
  const unreadableLists = gauge(
    'list_unreadable',
    'Always 1: PostgreSQL refuses to read this list, for this cause.',
    'list',
    'cause',
  )
  const schema = gauge('schema_info', 'Always 1: newest migration.', 'newest')
  const open = gauge(
    'database_connections',
    'Open connections. server is primary or a replica. A connection carries several reads, so few can be in use while requests wait.',
    'server',
    'state',
  )
  const waiting = gauge(
    'database_waiting_requests',
    'Requests that wait for the database.',
    'server',
  )
  const used = gauge(
    'database_replica_used',
    '1 while the service reads from the replica.',
    'server',
  )
  const bytes = gauge(
    'response_memory_bytes',
    'Memory of responses that are read but not yet sent.',
  )
  const limit = gauge('response_memory_limit_bytes', 'Limit of this memory (ANSWER_MEMORY_MB).')

  const readPrimary = async () => {
    const { readiness, unreadable, server: { version, newest, isStandby } = {} } = await check()
    for (const each of [info, schema, unreadableLists]) each.reset()
    for (const [list, cause] of unreadable) unreadableLists.set({ list, cause }, 1)
    up.set(version ? 1 : 0)
    standbys.set(readiness === 'standby' || isStandby ? 1 : 0)
    if (version) info.set({ version }, 1)
    if (newest) schema.set({ newest }, 1)
  }
  let sampledAt = Number.NEGATIVE_INFINITY
  const readRefreshes = async () => {
    if (performance.now() - sampledAt < REFRESHES_MS) return
    sampledAt = performance.now()
    const rows = await db.probe(refreshesStatement, []).catch(() => undefined)
    // Not earlier: meanwhile, another request of Prometheus may read the last values.
    sampled.reset()
    for (let row = rows?.shift(); row; row = rows?.shift())
      sampled.set({ refreshed: String(row[0]) }, Number(row[1]))
  }
  return async () => {
    await Promise.all([readPrimary(), readRefreshes()])
    const { primary, replicas } = db.state()
    for (const { name: server, inUse, connections, waiting: requests } of [
      { ...primary, name: 'primary' },
      ...replicas,
    ]) {
      open.set({ server, state: 'in_use' }, inUse)
      open.set({ server, state: 'idle' }, Math.max(0, connections - inUse))
      waiting.set({ server }, requests)
    }
    for (const { name: server, unusableReason } of replicas)
      used.set({ server }, unusableReason ? 0 : 1)
    bytes.set(memory.used)
    limit.set(memory.limit)
  }
}
