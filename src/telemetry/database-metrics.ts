import { Gauge, type Registry } from 'prom-client'
import type { Database, Watch } from '../postgres/database.ts'
import { type ServerFacts, serverFacts } from '../postgres/readiness.ts'
import type { HostState } from '../postgres/server.ts'
import { type Durations, noDurations, record, registerHistogram } from './histogram.ts'

/** What goes on between the service and its databases: read off the pools, at no cost to requests. */
export function databaseMetrics(registry: Registry, db: Database): void {
  const registers = [registry]
  const gauge = (
    name: string,
    help: string,
    labelNames: string[],
    tell: (set: (labels: Record<string, string>, value: number) => void) => unknown,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        this.reset()
        await tell((labels, value) => this.set(labels, value))
      },
    })

  const facts = lately(() => serverFacts(db).catch(() => undefined))
  gauge('database_up', '1 if the primary answered at the last look.', [], async (set) =>
    set({}, Number((await facts()) !== undefined)),
  )
  gauge('database_info', 'The version of the primary.', ['version'], async (set) => {
    const known = await facts()
    if (known) set({ version: known.version }, 1)
  })
  gauge('schema_info', 'The newest migration of the schema.', ['newest'], async (set) => {
    const known = await facts()
    if (known) set({ newest: known.newestMigration }, 1)
  })
  gauge('database_connections', 'Open connections, by host and use.', ['host', 'state'], (set) => {
    for (const { host, inUse, connections } of hosts(db)) {
      set({ host, state: 'in_use' }, inUse)
      set({ host, state: 'idle' }, Math.max(0, connections - inUse))
    }
  })
  gauge('database_waiting_requests', 'Requests that wait for a connection.', ['host'], (set) => {
    for (const { host, waiting } of hosts(db)) set({ host }, waiting)
  })
  gauge('database_failing', '1 while next to no request gets an answer.', ['host'], (set) => {
    for (const { host, failing } of hosts(db)) set({ host }, Number(failing))
  })
  gauge('database_replica_used', '1 while the replica is read from.', ['host'], (set) => {
    for (const { name, fault } of db.state().replicas) set({ host: name }, Number(!fault))
  })
  gauge('database_replica_lag_seconds', 'Lag at the last look.', ['host'], (set) => {
    for (const { name, lagMs } of db.state().replicas) {
      if (lagMs !== undefined) set({ host: name }, lagMs / 1000)
    }
  })
  gauge('answer_memory_bytes', 'Answers that are read but not yet sent.', [], (set) =>
    set({}, db.state().answerBytes),
  )
  gauge('answer_memory_limit_bytes', 'How much of that there may be.', [], (set) =>
    set({}, db.state().answerBytesLimit),
  )
}

function hosts(db: Database): ({ host: string } & HostState)[] {
  const { primary, replicas } = db.state()
  return [
    { host: 'primary', ...primary },
    ...replicas.map((replica) => ({ host: replica.name, ...replica })),
  ]
}

/** How often the primary is asked about itself at most, in ms. */
const LOOK_EVERY = 5_000

function lately(look: () => Promise<ServerFacts | undefined>) {
  let last: Promise<ServerFacts | undefined> | undefined
  let at = Number.NEGATIVE_INFINITY
  return (): Promise<ServerFacts | undefined> => {
    if (last === undefined || performance.now() - at > LOOK_EVERY) {
      last = look()
      at = performance.now()
    }
    return last
  }
}

/**
 * How long the reads of requests take, the wait for a connection included, by the name of their
 * statement and by whether there was an answer.
 */
export function readDurations(registry: Registry): Watch {
  const all = new Map<string, { labels: Record<string, string>; durations: Durations }>()
  registerHistogram(
    registry,
    { name: 'database_read_duration_seconds', help: 'Durations of reads, by statement.' },
    () => [...all.values()],
  )
  const note = (statement: string, outcome: 'answered' | 'failed', start: number) => {
    const key = `${outcome} ${statement}`
    const series = all.get(key) ?? { labels: { statement, outcome }, durations: noDurations() }
    all.set(key, series)
    record(series.durations, (performance.now() - start) / 1000)
  }
  return async (statement, run) => {
    const start = performance.now()
    try {
      const answer = await run()
      note(statement, 'answered', start)
      return answer
    } catch (error) {
      note(statement, 'failed', start)
      throw error
    }
  }
}
