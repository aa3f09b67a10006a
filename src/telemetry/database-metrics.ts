import { Gauge, Histogram, type Registry } from 'prom-client'
import type { Limits } from '../limits/context.ts'
import type { Database } from '../postgres/database.ts'
import { isStandby } from '../postgres/failures.ts'
import type { Instrumentation, ServerState } from '../postgres/postgres-server.ts'
import { refreshesStatement, type ServerInfo, serverInfo } from '../postgres/readiness.ts'
import { DURATION_BUCKETS } from './http-metrics.ts'

/** Maximum age of the state of the primary, in ms. */
const PRIMARY_STATE_MS = 5_000
/** The same for the sample of refreshes, which reads 5,000 rows. */
const REFRESHES_MS = 60_000

/** Registers metrics of pools and servers. Each request of Prometheus computes them. */
export function databaseMetrics(
  registry: Registry,
  { db, limits: { memory } }: { db: Database; limits: Limits },
): void {
  const gauge = gaugesOf(registry)
  primaryMetrics(gauge, db)
  serverMetrics(gauge, db)
  gauge('response_memory_bytes', 'Responses that are read but not yet sent.', [], (set) => {
    set({}, memory.used)
  })
  gauge('response_memory_limit_bytes', 'Limit of this memory.', [], (set) => {
    set({}, memory.limit)
  })
}

type Set = (labels: Record<string, string>, value: number) => void
type AddGauge = ReturnType<typeof gaugesOf>

function gaugesOf(registry: Registry) {
  return (
    name: string,
    help: string,
    labelNames: string[],
    collect: (set: Set) => void | Promise<void>,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        this.reset()
        await collect((labels, value) => this.set(labels, value))
      },
    })
}

function primaryMetrics(gauge: AddGauge, db: Database): void {
  const primaryState = cachedFor(PRIMARY_STATE_MS, () =>
    serverInfo(db).catch((error): Partial<ServerInfo> => ({ standby: isStandby(error) })),
  )
  gauge('database_up', '1 if the primary responded to the last check.', [], async (set) => {
    const { version, standby } = await primaryState()
    set({}, Number(version !== undefined && (!standby || db.allowsStandby)))
  })
  gauge('database_standby', '1 if the last check found a standby.', [], async (set) => {
    set({}, Number((await primaryState()).standby))
  })
  gauge('database_info', 'Version of the primary.', ['version'], async (set) => {
    const { version } = await primaryState()
    if (version !== undefined) set({ version }, 1)
  })
  const refreshes = cachedFor(REFRESHES_MS, async () => {
    const rows = await db.probe(refreshesStatement, []).catch(() => undefined)
    const counts: (string | null)[][] = []
    for (let row = rows?.shift(); row; row = rows?.shift()) counts.push(row)
    return counts
  })
  const help = 'Connections of a random sample of 5,000, by the time since their last refresh.'
  gauge('connections_sampled', help, ['refreshed'], async (set) => {
    for (const [refreshed, count] of await refreshes())
      set({ refreshed: String(refreshed) }, Number(count))
  })
  gauge('schema_info', 'Newest migration.', ['newest'], async (set) => {
    const { newestMigration: newest } = await primaryState()
    if (newest !== undefined) set({ newest }, 1)
  })
}

function serverMetrics(gauge: AddGauge, db: Database): void {
  gauge('database_connections', 'Open connections.', ['server', 'state'], (set) => {
    for (const { server, inUse, connections } of servers(db)) {
      set({ server, state: 'in_use' }, inUse)
      set({ server, state: 'idle' }, Math.max(0, connections - inUse))
    }
  })
  gauge('database_waiting_requests', 'Requests that wait for the database.', ['server'], (set) => {
    for (const { server, waiting } of servers(db)) set({ server }, waiting)
  })
  gauge('database_replica_used', '1 while the replica is in use.', ['server'], (set) => {
    for (const { name, unusableReason } of db.state().replicas)
      set({ server: name }, unusableReason ? 0 : 1)
  })
}

function servers(db: Database): ({ server: string } & ServerState)[] {
  const { primary, replicas } = db.state()
  return [
    { server: 'primary', ...primary },
    ...replicas.map((replica) => ({ server: replica.name, ...replica })),
  ]
}

function cachedFor<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined
  let readAt = 0
  return () => {
    if (cached === undefined || performance.now() - readAt > ms) {
      cached = read()
      readAt = performance.now()
    }
    return cached
  }
}

/** Records the duration of each read, including the wait for a connection. */
export function readDurations(registry: Registry): Instrumentation {
  const durations = new Histogram({
    name: 'database_read_duration_seconds',
    help: 'Durations of reads, by statement.',
    labelNames: ['statement', 'result'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  })
  return async (statement, run) => {
    const end = durations.startTimer({ statement })
    try {
      const rows = await run()
      end({ result: 'success' })
      return rows
    } catch (error) {
      end({ result: 'error' })
      throw error
    }
  }
}
