import pg from 'pg'
import {
  DatabaseUnavailable,
  HostFailed,
  HostSilent,
  isBroken,
  isLostPlan,
  isPassing,
  isStandbyConflict,
  isTurnedAway,
  isUnusable,
} from './errors.ts'
import { PLANNER_SETTINGS, type Statement, unnamed } from './statements.ts'
import { type Read, runBatch } from './wire/query.ts'
import type { RawRows } from './wire/raw-rows.ts'
import { tapRows } from './wire/row-filter.ts'
import { createServerSockets } from './wire/sockets.ts'

export interface PoolOptions {
  /** postgres://user:password@host:port/database */
  url: string
  /** Server connections for requests at most; one more is for the service's own questions. */
  size: number
  /** How long a request may wait for a free connection, in ms. */
  waitMs: number
  /** How long the server may work on one statement, in ms. */
  statementTimeoutMs: number
  /**
   * Whether a pooler that shares server connections between transactions (PgBouncer) stands between.
   * It refuses startup options, so that the role's own settings must do (`operator migrate` makes them).
   */
  pooler: boolean
}

/** A pool of sessions that can only read, and that keep the plan of a prepared statement. */
export function createPool(options: PoolOptions): SessionPool {
  const settings = {
    default_transaction_read_only: 'on',
    statement_timeout: options.statementTimeoutMs,
    // Not as long as it may work: whoever waits for a lock holds a connection that others could use.
    lock_timeout: Math.ceil(options.statementTimeoutMs / 5),
    ...PLANNER_SETTINGS,
  }
  const startup = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const pool = new SessionPool({
    connectionString: options.url,
    max: options.size + 1,
    connectionTimeoutMillis: Math.min(options.waitMs, CONNECT_MS),
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-query-service',
    ...(options.pooler ? {} : { options: startup.join(' ') }),
    stream: createServerSockets(),
    Client: TappedClient,
  })
  // A connection that breaks is told to whoever uses it; the pool itself only has to drop it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** A pool that knows whether its server still says anything. */
export class SessionPool extends pg.Pool {
  /** When something came from the server over any connection, on performance.now()'s clock. */
  heardAt = performance.now()
  readonly #inUse = new Set<pg.PoolClient>()

  constructor(config: pg.PoolConfig) {
    super(config)
    const heard = () => {
      this.heardAt = performance.now()
    }
    this.on('connect', ({ connection }) => connection.stream.on('data', heard))
    this.on('acquire', (client) => this.#inUse.add(client))
    this.on('release', (_error, client) => this.#inUse.delete(client))
  }

  /** Connections that are not idle. */
  get inUse(): number {
    return this.#inUse.size
  }

  /** Takes no more, and breaks off what still waits for answers. */
  abandon(): void {
    this.end().catch(() => {})
    for (const { connection } of this.#inUse) {
      connection.stream.destroy(new Error('the connection was given up, as its server is silent'))
    }
  }
}

/**
 * How long a connection may be idle, in ms. One that is opened anew has to plan each statement again:
 * the first requests after a pause cost several times what the next ones do.
 */
const IDLE_MS = 600_000
/** How long a new connection may take to open, in ms: some ten, but more where all is busy. */
const CONNECT_MS = 2_000

class TappedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    tapRows(this)
  }
}

/**
 * How many reads share a round trip at most. More of them would keep the server's other processors idle
 * for the sake of fewer packets; docs/performance.md has what was measured.
 */
const MOST = 8

export interface Batches<R extends Read> {
  /** Takes a read, to be sent at the end of this turn of the event loop, or when there is room. */
  add(statement: Statement, read: R): void
  /** Sends what waits, as far as there is room. */
  flush(): void
}

export interface BatchOptions<R extends Read> {
  send(statement: Statement, reads: R[]): void
  /** Whether another round trip may begin. */
  hasRoom(): boolean
  /** Whether the server is slow now. */
  isSlow(): boolean
}

/**
 * Gathers the reads of the same statement that come up within one turn of the event loop, or while all
 * connections are in use. Under load, waking the other side for every single one costs more than
 * answering it. The server sends what is short when it has done all of a batch: so where it is slow, each
 * read goes alone.
 */
function createBatches<R extends Read>(options: BatchOptions<R>): Batches<R> {
  const waiting = new Map<Statement, R[]>()
  let scheduled = false

  const flush = () => {
    scheduled = false
    // Each statement in turn; one that has more to send comes again behind the others.
    for (const [statement, reads] of waiting) {
      if (!options.hasRoom()) return
      waiting.delete(statement)
      const batch = reads.splice(0, options.isSlow() ? 1 : MOST)
      if (reads.length > 0) waiting.set(statement, reads)
      options.send(statement, batch)
    }
  }
  return {
    flush,
    add: (statement, read) => {
      const reads = waiting.get(statement)
      if (reads) reads.push(read)
      else waiting.set(statement, [read])
      if (!scheduled) setImmediate(flush)
      scheduled = true
    },
  }
}

/** One attempt at a read. */
export interface Attempt extends Read {
  /** When the answer is due, on performance.now()'s clock. */
  due: number
}

/** A server that had less time than this to answer has not been silent, in ms. */
const FAIR_MS = 100

/**
 * Takes each attempt that is answered out of `attempts`, and returns the error that kept the others from
 * it. A client goes back to the pool, unless it, or the server behind it, can no longer be trusted.
 * @throws HostFailed when no connection can be had in time
 */
async function roundTrip(
  pool: SessionPool,
  statement: Statement,
  attempts: Attempt[],
  longestMs: number,
): Promise<Error | undefined> {
  const client = await pool.connect().catch((cause) => {
    throw new HostFailed('no connection to the database', { cause })
  })
  const leftMs = () => Math.min(...attempts.map(({ due }) => due)) - performance.now()
  if (leftMs() < FAIR_MS) {
    client.release()
    throw new HostFailed('the connection to the database came too late')
  }
  let unanswered = attempts.length
  const look = () => {
    // A server that has answered some of them since the last look is not dead, but may be too slow.
    const alive = attempts.length < unanswered
    unanswered = attempts.length
    if (alive && leftMs() > 0) {
      timer = setTimeout(look, Math.min(longestMs, leftMs()))
      return
    }
    const Failure = alive ? DatabaseUnavailable : HostSilent
    client.connection.stream.destroy(new Failure('the database stopped answering'))
  }
  let timer = setTimeout(look, Math.min(longestMs, leftMs()))
  const first = await runBatch(client, statement, attempts)
  const lostPlan = isLostPlan(first)
  const error = lostPlan ? await runBatch(client, unnamed(statement), attempts) : first
  clearTimeout(timer)
  client.release(lostPlan || isUnusable(error))
  return error
}

export interface SessionsOptions extends PoolOptions {
  /** Whether statements are prepared by name; a pooler may not carry that (PgBouncer before 1.21). */
  prepare: boolean
}

/** One run of a statement: its values, when it is due, and where the memory of its rows is counted. */
type Question = Pick<Attempt, 'values' | 'holding' | 'due'>

/** @throws DatabaseUnavailable when no answer can be had until it is due */
type Ask = (statement: Statement, question: Question) => Promise<RawRows>

/** Our sessions on one server, and two ways to ask over them. */
export interface Sessions {
  /** In a round trip with those who ask the same in this turn of the event loop. */
  askTogether: Ask
  /** In a round trip of its own. */
  askAlone: Ask
  /** Connections that are open, and those of them that are in use. */
  connections(): { open: number; inUse: number }
  close(): Promise<void>
}

/** Round trips under full load take some tens of milliseconds. */
const SLOW_MS = 100

/** Nothing is wrong with this attempt: it stood behind one that failed, and was not run. */
class NotRun extends Error {
  override name = 'NotRun'
}

/** @param longestMs how long the server may be silent on a statement before it is taken for dead */
export function openSessions(options: SessionsOptions, longestMs: number): Sessions {
  let pool = createPool(options)
  let trips = 0
  let lastTripMs = 0

  /** Where one connection broke or fell silent, those beside it may be as dead without knowing it yet. */
  const distrust = (from: SessionPool, silent: boolean) => {
    if (from !== pool) return
    pool = createPool(options)
    if (silent) from.abandon()
    else from.end().catch(() => {})
  }
  const trip = async (given: Statement, attempts: Attempt[]) => {
    const from = pool
    const since = performance.now()
    const statement = options.prepare ? given : unnamed(given)
    const error = await roundTrip(from, statement, attempts, longestMs).catch(
      (error: Error) => error,
    )
    lastTripMs = performance.now() - since
    if (error === undefined) return
    // A question that may take less time than a statement can have stood in a pooler's queue for all of it.
    const queued = options.pooler && Math.round(lastTripMs) < longestMs
    const silent = error instanceof HostSilent && from.heardAt < since && !queued
    // A standby that ends a session because of what it has to replay has nothing against the others.
    const alone = isStandbyConflict(error) || isTurnedAway(error)
    if (silent || (isBroken(error) && !alone)) distrust(from, silent)
    attempts.shift()?.reject(error)
    for (const attempt of attempts) attempt.reject(isUnusable(error) ? error : new NotRun())
  }
  const send = async (statement: Statement, attempts: Attempt[]) => {
    trips += 1
    await trip(statement, attempts).finally(() => {
      trips -= 1
      batches.flush()
    })
  }
  const batches = createBatches<Attempt>({
    send,
    hasRoom: () => trips < options.size,
    isSlow: () => lastTripMs > SLOW_MS,
  })
  const alone: Send = (statement, attempt) => send(statement, [attempt])
  return {
    askTogether: asking(batches.add, alone),
    askAlone: asking(alone, alone),
    connections: () => ({ open: pool.totalCount, inUse: pool.inUse }),
    close: () => pool.end(),
  }
}

type Send = (statement: Statement, attempt: Attempt) => void

/** Asks in one way, and, where that only met a bad connection, once more in another. */
function asking(first: Send, again: Send): Ask {
  return async (statement, question) => {
    const attempt = (send: Send) =>
      new Promise<RawRows>((resolve, reject) => {
        send(statement, { ...question, resolve, reject })
      })
    try {
      return await attempt(first).catch((error) => {
        // Reading twice does no harm, and a connection that was cut says nothing of the next one.
        if (isOfSession(error) && performance.now() < question.due) return attempt(again)
        throw error
      })
    } catch (error) {
      throw asUnavailable(error)
    }
  }
}

/**
 * Whether the same statement may well be answered over another session, or by another server. One that
 * PgBouncer turned away would only stand in the same queue again, and make it longer.
 */
function isOfSession(error: unknown): boolean {
  if (isTurnedAway(error)) return false
  return error instanceof NotRun || isBroken(error) || isStandbyConflict(error)
}

/** What a failure means to the one who asked: faults of the statement itself stay what they are. */
function asUnavailable(error: unknown): unknown {
  if (error instanceof DatabaseUnavailable || !isPassing(error)) return error
  const Failure = isOfSession(error) ? HostFailed : DatabaseUnavailable
  return new Failure('the database did not answer', { cause: error })
}
