import type pg from 'pg'
import {
  asUnavailable,
  DatabaseUnavailable,
  isBroken,
  isConnectionFailure,
  isLostPlan,
  isPoolerTimeout,
  isStandbyConflict,
  ServerFailed,
  ServerSilent,
} from './errors.ts'
import { createPool, type PoolOptions, type ServerPool } from './pool.ts'
import type { MemoryReservation } from './response-memory.ts'
import { type Parameter, type Statement, unnamed } from './statements.ts'
import { destroyConnection, sendTogether } from './wire/client.ts'
import { sendQuery } from './wire/query.ts'
import { RawRows } from './wire/raw-rows.ts'

export interface PipelineOptions extends PoolOptions {
  /** False if the pooler does not support prepared statements (PgBouncer before 1.21). */
  prepare: boolean
}

export interface ReadOptions {
  /** Deadline on performance.now()'s clock. */
  due: number
  reservation?: MemoryReservation | undefined
  /** True if no other read may share the connection: for large reads, and for second attempts. */
  alone?: boolean
}

/** Connections to one server. Each carries several reads in flight (the pipeline mode of pg). */
export interface Pipeline {
  /** @throws DatabaseUnavailable if no response arrives before the deadline */
  read(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows>
  /** Reads on the connection that is reserved for health checks and metrics. */
  probe(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows>
  /** Number of open connections, and of those with a read in flight. */
  connections(): { open: number; inUse: number }
  close(): Promise<void>
}

/**
 * Maximum number of reads in flight on a connection. Reads of one turn of the event loop share a
 * packet. With fewer, waking PostgreSQL costs more than the read. With more, other processors of
 * PostgreSQL stay idle.
 */
const DEPTH = 8
/** Minimum time that a server must have for a response before it counts as silent, in ms. */
const FAIR_MS = 100
/** Interval of the checks for overdue reads, in ms. */
const CHECK_MS = 100
/** Idle time after which a connection returns to the pool, in ms. */
const KEEP_MS = 1_000

interface Read extends ReadOptions {
  statement: Statement
  values: Parameter[]
  /** Queues the second attempt; undefined during that attempt. */
  repeat: ((read: Read) => void) | undefined
  sentAt: number
  resolve(rows: RawRows): void
  reject(error: unknown): void
}

/** A connection that is checked out of the pool. */
interface Lease {
  client: pg.PoolClient
  pool: ServerPool
  /** Reads in flight, oldest first. */
  inFlight: Set<Read>
  /** True while the connection is reserved for one read. */
  alone: boolean
  /** Time of the end of the last read, or of the start of the first one. */
  progressAt: number
  /** True if the connection must not return to the pool. */
  discard: boolean
}

/** @param silentMs time without a completed read after which the server counts as down */
export function openPipeline(options: PipelineOptions, silentMs: number): Pipeline {
  const leases = new Set<Lease>()
  const probes = new Set<Lease>()
  const waiting: Read[] = []
  /**
   * Reads in flight per connection. PgBouncer 1.18 mixes up the messages of pipelined queries, so there
   * is one behind a pooler.
   */
  const depth = options.pooler ? 1 : DEPTH
  let opening = 0
  let scheduled = false
  let closing = false

  /** Drops a connection that broke while it was idle. */
  const onEnd = (client: pg.PoolClient) => {
    const lease = [...leases].find((each) => each.client === client)
    if (lease === undefined) return
    lease.discard = true
    releaseIfIdle(lease)
  }
  let pool = createPool(options, onEnd)

  const schedule = () => {
    if (!scheduled) setImmediate(dispatch)
    scheduled = true
  }
  /** Sends waiting reads in order, on an idle connection, a new one, or the least busy one. */
  const dispatch = () => {
    scheduled = false
    while (waiting.length > 0) {
      const lease = leastBusy(leases, pool, depth)
      const isBusy = lease === undefined || lease.inFlight.size > 0
      if (isBusy && leases.size + opening < options.size) {
        if (opening * depth >= waiting.length) return
        open()
        continue
      }
      if (lease === undefined || (isBusy && waiting[0]?.alone)) return
      const packet = takePacket(waiting, depth)
      sendTogether(lease.client, () => {
        for (const read of packet) start(lease, read)
      })
    }
  }
  const open = () => {
    const from = pool
    opening += 1
    from.connect((error, client) => {
      opening -= 1
      const lease = client && leaseOf(client, from)
      const [read] = client ? [] : waiting.splice(0, 1)
      if (lease) leases.add(lease)
      if (read) fail(read, new ServerFailed('no connection to the database', { cause: error }))
      dispatch()
      if (lease) releaseIfIdle(lease)
    })
  }
  const startProbe = (read: Read) => {
    const from = pool
    from.connect((error, client) => {
      if (client) {
        const lease = leaseOf(client, from)
        probes.add(lease)
        start(lease, read)
      } else fail(read, new ServerFailed('no connection to the database', { cause: error }))
    })
  }
  const start = (lease: Lease, read: Read) => {
    read.sentAt = performance.now()
    if (lease.inFlight.size === 0) lease.progressAt = read.sentAt
    lease.inFlight.add(read)
    lease.alone = read.alone === true
    const ended = (error?: Error) => {
      lease.inFlight.delete(read)
      lease.alone = false
      lease.progressAt = performance.now()
      if (error) lose(lease, read, error)
      releaseIfIdle(lease)
      if (waiting.length > 0) schedule()
    }
    if (read.due - read.sentAt < FAIR_MS) {
      ended(new ServerFailed('no connection to the database in time'))
      return
    }
    const send = (statement: Statement) =>
      sendQuery(
        lease.client,
        statement,
        read.values,
        new RawRows(read.reservation),
        (error, rows) => {
          if (isLostPlan(error) && statement.name !== '') {
            lease.discard = true
            send(unnamed(statement))
            return
          }
          if (rows && !rows.refused) read.resolve(rows)
          ended(error ?? (rows?.refused ? refusalOf(read) : undefined))
        },
      )
    send(options.prepare ? read.statement : unnamed(read.statement))
  }
  const releaseIfIdle = (lease: Lease) => {
    if (lease.inFlight.size > 0) return
    const isKept = !closing && !lease.discard && lease.pool === pool && leases.has(lease)
    if (!isKept && (leases.delete(lease) || probes.delete(lease))) {
      lease.client.release(lease.discard)
    }
  }
  /** Discards the connection after a failed read, and the whole pool if the server may be down. */
  const lose = (lease: Lease, read: Read, error: Error) => {
    const broken = isBroken(error)
    if (broken || error instanceof ServerFailed) lease.discard = true
    // PgBouncer may have queued a late probe for all of its time, which is shorter than silentMs.
    const queued = options.pooler && Math.round(performance.now() - read.sentAt) < silentMs
    const silent = error instanceof ServerSilent && lease.pool.receivedAt < read.sentAt && !queued
    // Replay conflicts and pooler timeouts close one connection only.
    const single = isStandbyConflict(error) || isPoolerTimeout(error)
    if (lease.pool === pool && (silent || (broken && !single))) replacePool(silent)
    fail(read, error)
  }
  /** Replaces the pool: if one connection broke or is silent, idle ones may be dead as well. */
  const replacePool = (silent: boolean) => {
    const from = pool
    pool = createPool(options, onEnd)
    for (const lease of [...leases]) releaseIfIdle(lease)
    if (silent) from.abandon()
    else from.end().catch(() => {})
  }
  /** Repeats a read once after a connection failure. Repeating a read is safe. */
  const fail = (read: Read, error: Error) => {
    const { repeat } = read
    if (repeat === undefined || !isConnectionFailure(error) || performance.now() >= read.due) {
      read.reject(asUnavailable(error))
      return
    }
    read.repeat = undefined
    read.alone = true
    repeat(read)
  }
  const check = () => {
    const now = performance.now()
    for (const lease of [...leases, ...probes]) closeOverdue(lease, silentMs)
    for (const lease of [...leases]) {
      if (lease.inFlight.size > 0 || now - lease.progressAt < KEEP_MS) continue
      leases.delete(lease)
      lease.client.release(lease.discard)
    }
  }
  const timer = setInterval(check, CHECK_MS).unref()
  const enqueue = (read: Read) => {
    waiting.push(read)
    schedule()
  }
  const promise = (
    begin: (read: Read) => void,
    statement: Statement,
    values: Parameter[],
    readOptions: ReadOptions,
  ) =>
    new Promise<RawRows>((resolve, reject) =>
      begin({ ...readOptions, statement, values, repeat: begin, sentAt: 0, resolve, reject }),
    )
  return {
    read: (...read) => promise(enqueue, ...read),
    probe: (...read) => promise(startProbe, ...read),
    connections: () => {
      const busy = [...leases, ...probes].filter(({ inFlight }) => inFlight.size > 0)
      return { open: pool.totalCount, inUse: busy.length }
    },
    close: () => {
      closing = true
      clearInterval(timer)
      for (const lease of [...leases]) releaseIfIdle(lease)
      return pool.end()
    },
  }
}

const leaseOf = (client: pg.PoolClient, pool: ServerPool): Lease => ({
  client,
  pool,
  inFlight: new Set(),
  alone: false,
  progressAt: performance.now(),
  discard: false,
})

function leastBusy(leases: Iterable<Lease>, pool: ServerPool, depth: number): Lease | undefined {
  let best: Lease | undefined
  for (const lease of leases) {
    const { size } = lease.inFlight
    if (lease.alone || lease.discard || size >= depth || lease.pool !== pool) continue
    if (size === 0) return lease
    if (best === undefined || size < best.inFlight.size) best = lease
  }
  return best
}

/** Takes the next reads: a large one alone, or several small ones. */
function takePacket(waiting: Read[], depth: number): Read[] {
  const end = waiting.findIndex(({ alone }) => alone)
  const count = end < 0 ? waiting.length : Math.max(1, end)
  return waiting.splice(0, Math.min(count, depth))
}

const refusalOf = ({ reservation }: Read) =>
  new DatabaseUnavailable(reservation?.ended ? 'the client is gone' : 'responses fill the memory')

/** Closes the connection if a read is overdue, or if no read has ended for `silentMs`. */
function closeOverdue(lease: Lease, silentMs: number): void {
  const now = performance.now()
  const [oldest] = lease.inFlight
  if (oldest === undefined) return
  const isOverdue = [...lease.inFlight].some(({ due }) => due <= now)
  if (!isOverdue && now - lease.progressAt < silentMs) return
  // A server that responded after the oldest read was sent is slow, not down.
  const Failure = lease.progressAt > oldest.sentAt ? DatabaseUnavailable : ServerSilent
  destroyConnection(lease.client, new Failure('the database stopped responding'))
}
