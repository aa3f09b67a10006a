import type pg from 'pg'
import { ResponseTooLarge, Unavailable } from '../limits/errors.ts'
import type { MemoryReservation } from '../limits/response-memory.ts'
import {
  asUnavailable,
  isBroken,
  isConnectionFailure,
  isLostPlan,
  isPoolerTimeout,
  isReset,
  isStandbyConflict,
  ServerFailed,
  ServerSilent,
} from './errors.ts'
import { createPool, findServer, type PoolOptions, type ServerPool } from './pool.ts'
import { serverName, serverUrls } from './server-urls.ts'
import { type Parameter, type Statement, unnamed } from './statements.ts'
import { destroyConnection, sendTogether } from './wire/client.ts'
import { sendQuery } from './wire/query.ts'
import { RawRows } from './wire/raw-rows.ts'

export interface PipelineOptions extends PoolOptions {
  /** False if the pooler does not support prepared statements (PgBouncer before 1.21). */
  prepare: boolean
  /** Called with `host:port` after a failover to another server of the URL. */
  onFailover?: ((server: string) => void) | undefined
}

export interface ReadOptions {
  /** Deadline on performance.now()'s clock. */
  due: number
  reservation?: MemoryReservation | undefined
  /** True if no other read may share the connection: for large reads, and for second attempts. */
  alone?: boolean
}

/**
 * Maximum number of reads in flight on a connection. Reads of one turn of the event loop share a
 * packet. With fewer, waking PostgreSQL costs more than the read. With more, other processors of
 * PostgreSQL stay idle.
 */
const DEPTH = 8
/** Minimum time that a server must have for a response before it counts as silent, in ms. */
const FAIR_MS = 100
/** Two connections that break within this time, without a message between, replace the pool, in ms. */
const REPEATED_MS = 1_000
/** Time without a completed read after which a connection gets no further reads, in ms. */
const STALLED_MS = 250
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
  /** Read that took too long, so that the connection was closed. */
  late: Read | undefined
}

/** Connections to one server. Each carries several reads in flight (the pipeline mode of pg). */
export class Pipeline {
  readonly #options: PipelineOptions
  readonly #silentMs: number
  /** Maximum number of reads in flight on a connection. */
  readonly #depth: number
  readonly #timer: NodeJS.Timeout
  readonly #leases = new Set<Lease>()
  readonly #probes = new Set<Lease>()
  readonly #waiting: Read[] = []
  /** URLs of the servers that may be used; the first one is in use. */
  #urls: string[]
  #search: Promise<void> | undefined
  #pool: ServerPool
  #opening = 0
  /** Time at which a connection broke last. */
  #brokenAt = Number.NEGATIVE_INFINITY
  #scheduled = false
  #closing = false

  /** @param silentMs time without a completed read after which the server counts as down */
  constructor(options: PipelineOptions, silentMs: number) {
    this.#options = options
    this.#silentMs = silentMs
    // PgBouncer 1.18 mixes up the messages of pipelined queries.
    this.#depth = options.pooler ? 1 : DEPTH
    this.#urls = serverUrls(options.url)
    this.#pool = this.#createPool()
    this.#timer = setInterval(this.#check, CHECK_MS).unref()
  }

  /** @throws Unavailable if no response arrives before the deadline */
  read(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows> {
    return promiseRead(this.#enqueue, statement, values, options)
  }

  /** Reads on the connection that is reserved for health checks and metrics. */
  probe(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows> {
    return promiseRead(this.#startProbe, statement, values, options)
  }

  /** Number of open connections, and of those with a read in flight. */
  connections(): { open: number; inUse: number } {
    const busy = [...this.#leases, ...this.#probes].filter(({ inFlight }) => inFlight.size > 0)
    return { open: this.#pool.totalCount, inUse: busy.length }
  }

  close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#timer)
    for (const lease of [...this.#leases]) this.#releaseIfIdle(lease)
    return this.#pool.end()
  }

  readonly #enqueue = (read: Read): void => {
    this.#waiting.push(read)
    this.#schedule()
  }

  #schedule(): void {
    if (!this.#scheduled) setImmediate(this.#dispatch)
    this.#scheduled = true
  }

  /** Sends waiting reads in order, on an idle connection, a new one, or the least busy one. */
  readonly #dispatch = (): void => {
    this.#scheduled = false
    while (this.#waiting.length > 0) {
      const lease = leastBusy(this.#leases, this.#pool, this.#depth)
      const isBusy = lease === undefined || lease.inFlight.size > 0
      // Connections that are opening serve the reads that wait.
      if (isBusy && this.#opening * this.#depth >= this.#waiting.length) return
      if (isBusy && this.#leases.size + this.#opening < this.#options.size) {
        this.#open()
        continue
      }
      if (lease === undefined || (isBusy && this.#waiting[0]?.alone)) return
      const packet = takePacket(this.#waiting, this.#depth - lease.inFlight.size)
      sendTogether(lease.client, () => {
        for (const read of packet) this.#start(lease, read)
      })
    }
  }

  #open(): void {
    this.#opening += 1
    this.#connect((error, lease) => {
      this.#opening -= 1
      // Without this connection, the reads that it was opened for fail, or are repeated on another.
      const failed = lease ? [] : this.#waiting.splice(0, this.#depth)
      if (lease) this.#leases.add(lease)
      for (const read of failed) this.#fail(read, notConnected(error), isReset(error))
      this.#dispatch()
      if (lease) this.#releaseIfIdle(lease)
    })
  }

  readonly #startProbe = (read: Read): void => {
    this.#connect((error, lease) => {
      if (lease) {
        this.#probes.add(lease)
        this.#start(lease, read)
      } else this.#fail(read, notConnected(error))
    })
  }

  /** Connects to the server in use. If that fails, connects to another server of the URL. */
  #connect(done: (error: unknown, lease: Lease | undefined) => void, again = true): void {
    const from = this.#pool
    from.connect((error, client) => {
      if (client || !again || this.#urls.length < 2) done(error, client && leaseOf(client, from))
      else this.#failOver(from).then(() => this.#connect(done, false))
    })
  }

  /** Replaces the pool if another server accepts connections. All callers share one search. */
  async #failOver(from: ServerPool): Promise<void> {
    if (from !== this.#pool) return
    const [, ...others] = this.#urls
    const use = (url: string) => {
      if (this.#closing) return
      this.#urls = [url, ...this.#urls.filter((each) => each !== url)]
      this.#replacePool(false)
      this.#options.onFailover?.(serverName(url))
    }
    this.#search ??= findServer(this.#options, others)
      .then(use, () => {})
      .finally(() => {
        this.#search = undefined
      })
    await this.#search
  }

  #createPool(): ServerPool {
    const [url = ''] = this.#urls
    return createPool({ ...this.#options, url }, this.#onEnd)
  }

  #start(lease: Lease, read: Read): void {
    read.sentAt = performance.now()
    if (read.due - read.sentAt < FAIR_MS) {
      this.#fail(read, new ServerFailed('no connection to the database in time'))
      this.#releaseIfIdle(lease)
      return
    }
    if (lease.inFlight.size === 0) lease.progressAt = read.sentAt
    lease.inFlight.add(read)
    lease.alone = read.alone === true
    this.#send(lease, read, this.#options.prepare ? read.statement : unnamed(read.statement))
  }

  #send(lease: Lease, read: Read, statement: Statement): void {
    const { client } = lease
    sendQuery(client, statement, read.values, new RawRows(read.reservation), (error, rows) => {
      if (isLostPlan(error) && statement.name !== '') {
        lease.discard = true
        this.#send(lease, read, unnamed(statement))
        return
      }
      if (rows && !rows.overLimit) read.resolve(rows)
      this.#end(lease, read, error ?? (rows?.overLimit ? rejectionOf(read) : undefined))
    })
  }

  #end(lease: Lease, read: Read, error: Error | undefined): void {
    lease.inFlight.delete(read)
    lease.alone = false
    lease.progressAt = performance.now()
    if (error) this.#lose(lease, read, error)
    this.#releaseIfIdle(lease)
    if (this.#waiting.length > 0) this.#schedule()
  }

  #releaseIfIdle(lease: Lease): void {
    if (lease.inFlight.size > 0) return
    const isUsable = !this.#closing && !lease.discard && lease.pool === this.#pool
    if (isUsable && this.#leases.has(lease)) return
    if (this.#leases.delete(lease) || this.#probes.delete(lease)) {
      lease.client.release(lease.discard)
    }
  }

  /** Discards the connection after a failed read, and the whole pool if the server may be down. */
  #lose(lease: Lease, read: Read, error: Error): void {
    // All reads in flight on a broken connection fail; the first one counts.
    const broken = isBroken(error) && !lease.discard
    if (isBroken(error) || error instanceof ServerFailed) lease.discard = true
    // PgBouncer may have queued a late probe for all of its time, which is shorter than silentMs.
    const waited = Math.round(performance.now() - read.sentAt)
    const queued = this.#options.pooler && waited < this.#silentMs
    const silent = error instanceof ServerSilent && lease.pool.receivedAt < read.sentAt && !queued
    // Replay conflicts and pooler timeouts close one connection only.
    const single = isStandbyConflict(error) || isPoolerTimeout(error)
    const now = performance.now()
    const wasRecent = now - this.#brokenAt < REPEATED_MS
    const again = broken && !single && wasRecent && lease.pool.receivedAt < this.#brokenAt
    if (broken && !single) this.#brokenAt = now
    if (lease.pool === this.#pool && (silent || again)) this.#replacePool(silent)
    // PostgreSQL runs the reads of a connection in order. The reads behind a late one have not begun.
    const isBehind = lease.late !== undefined && lease.late !== read && lease.pool === this.#pool
    this.#fail(read, error, isBehind || isConnectionFailure(error))
  }

  /** Replaces the pool: if two connections broke or one is silent, idle ones may be dead as well. */
  #replacePool(silent: boolean): void {
    const from = this.#pool
    this.#brokenAt = Number.NEGATIVE_INFINITY
    this.#pool = this.#createPool()
    for (const lease of [...this.#leases]) this.#releaseIfIdle(lease)
    if (silent) from.abandon()
    else from.end().catch(() => {})
  }

  /** Drops a connection that broke while it was idle. */
  readonly #onEnd = (client: pg.PoolClient): void => {
    const lease = [...this.#leases].find((each) => each.client === client)
    if (lease === undefined) return
    lease.discard = true
    this.#releaseIfIdle(lease)
  }

  /** Repeats a read once after a connection failure. Repeating a read is safe. */
  #fail(read: Read, error: Error, again = isConnectionFailure(error)): void {
    const { repeat } = read
    if (repeat === undefined || !again || performance.now() >= read.due) {
      read.reject(asUnavailable(error))
      return
    }
    read.repeat = undefined
    // A read that was sent may have broken its connection.
    read.alone ||= read.sentAt > 0
    repeat(read)
  }

  readonly #check = (): void => {
    const now = performance.now()
    for (const read of this.#waiting.filter(({ due }) => due <= now)) {
      this.#waiting.splice(this.#waiting.indexOf(read), 1)
      this.#fail(read, notConnected(undefined))
    }
    for (const lease of [...this.#leases, ...this.#probes]) closeOverdue(lease, this.#silentMs)
    for (const lease of [...this.#leases]) {
      if (lease.inFlight.size > 0 || now - lease.progressAt < KEEP_MS) continue
      this.#leases.delete(lease)
      lease.client.release(lease.discard)
    }
  }
}

function promiseRead(
  begin: (read: Read) => void,
  statement: Statement,
  values: Parameter[],
  options: ReadOptions,
): Promise<RawRows> {
  return new Promise((resolve, reject) =>
    begin({ ...options, statement, values, repeat: begin, sentAt: 0, resolve, reject }),
  )
}

const notConnected = (cause: unknown) =>
  new ServerFailed('no connection to the database', { cause })

const leaseOf = (client: pg.PoolClient, pool: ServerPool): Lease => ({
  client,
  pool,
  inFlight: new Set(),
  alone: false,
  progressAt: performance.now(),
  discard: false,
  late: undefined,
})

function leastBusy(leases: Iterable<Lease>, pool: ServerPool, depth: number): Lease | undefined {
  let best: Lease | undefined
  const stalled = performance.now() - STALLED_MS
  for (const lease of leases) {
    const { size } = lease.inFlight
    if (lease.alone || lease.discard || size >= depth || lease.pool !== pool) continue
    if (size === 0) return lease
    if (lease.progressAt < stalled) continue
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

function rejectionOf({ reservation }: Read): Unavailable {
  if (reservation?.ended) return new Unavailable('the client is gone')
  if (reservation?.tooLarge) return new ResponseTooLarge('the response exceeds the memory')
  return new Unavailable('responses fill the memory')
}

/**
 * Rejects overdue reads. Closes the connection if all its reads are overdue, or if none has ended for
 * `silentMs`.
 */
function closeOverdue(lease: Lease, silentMs: number): void {
  const now = performance.now()
  const [oldest] = lease.inFlight
  if (oldest === undefined) return
  const overdue = [...lease.inFlight].filter(({ due }) => due <= now)
  // A server that responded after the oldest read was sent is slow, not down.
  const Failure = lease.progressAt > oldest.sentAt ? Unavailable : ServerSilent
  const error = new Failure('the database stopped responding')
  for (const read of overdue) read.reject(error)
  if (overdue.length < lease.inFlight.size && now - lease.progressAt < silentMs) return
  lease.late = oldest
  destroyConnection(lease.client, error)
}
