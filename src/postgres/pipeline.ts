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
  /** False where a pooler does not support prepared statements (PgBouncer before 1.21). */
  prepare: boolean
}

export interface ReadOptions {
  /** Deadline on performance.now()'s clock. */
  due: number
  reservation?: MemoryReservation | undefined
  /** True for a read that needs a connection to itself, as it would delay those behind it. */
  alone?: boolean
}

/** The connections to one server. Each carries several reads in flight (pg's pipeline mode). */
export interface Pipeline {
  /** @throws DatabaseUnavailable where no response arrives before the deadline */
  read(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows>
  /** The same on the connection that is reserved for the service's own probes. */
  probe(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows>
  /** Open connections, and those that carry a read. */
  connections(): { open: number; inUse: number }
  close(): Promise<void>
}

/**
 * Reads in flight on one connection. Those of one turn of the event loop share a packet. With fewer, waking the
 * other process costs more than the read; with more, PostgreSQL's other processors idle.
 */
const DEPTH = 8
/** A server that had less time than this has not been silent, in ms. */
const FAIR_MS = 100
/** Interval between checks for overdue reads, in ms. */
const CHECK_MS = 100
/** Time without a read after which a connection returns to the pool, in ms. */
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
  /** True while the read in flight must have no other behind it. */
  alone: boolean
  /** When the last read ended, or the first one was sent. */
  progressAt: number
  /** True where the connection must not return to the pool. */
  discard: boolean
}

/** @param silentMs time after which a server that completes no read counts as down */
export function openPipeline(options: PipelineOptions, silentMs: number): Pipeline {
  const leases = new Set<Lease>()
  const probes = new Set<Lease>()
  const waiting: Read[] = []
  /** PgBouncer 1.18 mixes up pipelined messages of its clients: behind a pooler, each read goes alone. */
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
  /** Serves reads in order of arrival: on an idle connection, a new one, or the least busy one. */
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
      ended(new ServerFailed('the connection to the database came too late'))
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
  /** Drops what can no longer be trusted after a failed read: the connection, or the whole pool. */
  const lose = (lease: Lease, read: Read, error: Error) => {
    const broken = isBroken(error)
    if (broken || error instanceof ServerFailed) lease.discard = true
    // A probe takes less time than a statement may: PgBouncer may have queued it for all of it.
    const queued = options.pooler && Math.round(performance.now() - read.sentAt) < silentMs
    const silent = error instanceof ServerSilent && lease.pool.receivedAt < read.sentAt && !queued
    // A standby that cancels for its replay, and a pooler that rejects, close one connection only.
    const single = isStandbyConflict(error) || isPoolerTimeout(error)
    if (lease.pool === pool && (silent || (broken && !single))) replacePool(silent)
    fail(read, error)
  }
  /** Where one connection broke or fell silent, idle ones may be dead as well. */
  const replacePool = (silent: boolean) => {
    const from = pool
    pool = createPool(options, onEnd)
    for (const lease of [...leases]) releaseIfIdle(lease)
    if (silent) from.abandon()
    else from.end().catch(() => {})
  }
  /** Repeats a read once after a failed connection: reading twice does no harm. */
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

/** Takes the reads that are next: one that needs its own connection, or several that share one. */
function takePacket(waiting: Read[], depth: number): Read[] {
  const end = waiting.findIndex(({ alone }) => alone)
  const count = end < 0 ? waiting.length : Math.max(1, end)
  return waiting.splice(0, Math.min(count, depth))
}

const refusalOf = ({ reservation }: Read) =>
  new DatabaseUnavailable(reservation?.ended ? 'the client is gone' : 'responses fill the memory')

/** Closes the connection when a read is overdue, or none has ended for `silentMs`. */
function closeOverdue(lease: Lease, silentMs: number): void {
  const now = performance.now()
  const [oldest] = lease.inFlight
  if (oldest === undefined) return
  const isOverdue = [...lease.inFlight].some(({ due }) => due <= now)
  if (!isOverdue && now - lease.progressAt < silentMs) return
  // A server that has answered since the oldest read was sent is not down, but too slow.
  const Failure = lease.progressAt > oldest.sentAt ? DatabaseUnavailable : ServerSilent
  destroyConnection(lease.client, new Failure('the database stopped responding'))
}
