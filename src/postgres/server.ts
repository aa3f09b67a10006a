import { ConcurrencyLimit, type ConcurrencyOptions, LockBreaker } from '../limits/concurrency.ts'
import type { ReadContext } from '../limits/context.ts'
import { Unavailable } from '../limits/errors.ts'
import { Connections, type ConnectionsOptions } from './connections.ts'
import { isLocked, isPoolerTimeout, isServerFailure } from './errors.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

export interface ServerOptions extends ConnectionsOptions, Omit<ConcurrencyOptions, 'places'> {}

export interface ServerState {
  /** Number of open connections, and of those in use. */
  connections: number
  inUse: number
  waiting: number
  /** True if the server responded to almost no statement of the last seconds. */
  failing: boolean
  /** True if the server recently responded to a request, even if health checks fail. */
  responding: boolean
}

export interface PostgresServer {
  /**
   * Runs a SELECT. All reads of a request share a deadline: the start of the request plus the maximum
   * wait, the statement timeout and one second.
   * @throws Unavailable if no response arrives in time
   */
  read(statement: Statement, values: Parameter[], context: ReadContext): Promise<RawRows>
  /** Runs a statement of a health check or metric on a reserved connection, without a queue. */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows>
  state(): ServerState
  /** Replaces its connections, see Connections. */
  renew(): Promise<void>
  close(): Promise<void>
}

/** Average number of reads in flight per connection. More would only wait in PostgreSQL's sockets. */
const READS_PER_CONNECTION = 2
/** Time after the statement timeout at which the server counts as down, in ms. */
const GRACE_MS = 1_000
/** Time after a response during which the server counts as responding, in ms. */
const RESPONDING_MS = 1_000

export function openServer(options: ServerOptions): PostgresServer {
  const silentMs = options.statementTimeoutMs + GRACE_MS
  const limit = new ConcurrencyLimit({ ...options, places: READS_PER_CONNECTION * options.size })
  const connections = new Connections(options, silentMs)
  const rate = new FailureRate()
  const locks = new LockBreaker()
  // Behind PgBouncer, a health check may queue behind requests for all of this time.
  const respondingMs = options.pooler ? silentMs : RESPONDING_MS
  /** While PgBouncer responds to other queries, its timeout means overload, not a failed server. */
  const classify = (error: unknown) =>
    isPoolerTimeout(error) && rate.respondedWithin(silentMs)
      ? new Unavailable('the pooler had no connection in time')
      : error

  return {
    read: async (statement, values, context) => {
      const { startedAt } = context
      const reservation = statement.singleRow ? undefined : context.memory
      const large = reservation?.large === true
      if (context.ended) throw new Unavailable('the client is gone')
      if (reservation?.setAside() === false) throw new Unavailable('responses fill the memory')
      const askedAt = performance.now()
      let entered = false
      let trial = false
      try {
        await limit.enter(context, large, startedAt + options.waitMs - askedAt)
        entered = true
        if (locks.locked.has(statement.name)) {
          locks.begin()
          trial = true
        }
        const due = startedAt + options.waitMs + silentMs
        const rows = await connections.read(statement, values, {
          context,
          reservation,
          due,
          alone: trial || large,
        })
        if (trial) locks.locked.delete(statement.name)
        rate.succeeded()
        return rows
      } catch (thrown) {
        if (isLocked(thrown)) locks.locked.add(statement.name)
        const error = classify(thrown)
        if (isServerFailure(error) && !context.ended) rate.failed()
        throw error
      } finally {
        const endedAt = performance.now()
        const sentAt = context.sentAt < askedAt ? endedAt : context.sentAt
        context.waitMs += sentAt - askedAt
        context.databaseMs += endedAt - sentAt
        if (large) reservation?.releaseSetAside()
        if (trial) locks.end()
        if (entered) limit.leave(context, large)
      }
    },
    probe: (statement, values) => connections.probe(statement, values),
    state: () => {
      const responding = rate.respondedWithin(respondingMs)
      return {
        ...connections.count(),
        waiting: limit.waiting,
        failing: rate.failing(),
        responding,
      }
    },
    renew: () => connections.renew(),
    close: async () => connections.close(),
  }
}

const HALF_MS = 500
/** Minimum duration of a streak of failures, in ms. */
const STREAK_MS = 2_000
/** Time after which a streak of failures ends without a success, in ms. */
const STREAK_END_MS = 5_000

/** Counts the last second's statements by their response. Requests rejected before the database are not counted. */
class FailureRate {
  #since = performance.now()
  #succeededAt = Number.NEGATIVE_INFINITY
  #now = { succeeded: 0, failed: 0 }
  #before = { succeeded: 0, failed: 0 }
  /** Number of failures since the last success, and times of the first and the last one. */
  #streak = { failures: 0, first: 0, last: 0 }

  succeeded(): void {
    const now = performance.now()
    if (now - this.#since >= HALF_MS) this.#rotate()
    this.#now.succeeded += 1
    this.#succeededAt = now
    this.#streak.failures = 0
  }

  failed(): void {
    this.#rotate()
    this.#now.failed += 1
    const now = performance.now()
    const { failures, first, last } = this.#streak
    this.#streak =
      failures > 0 && now - last < STREAK_END_MS
        ? { failures: failures + 1, first, last: now }
        : { failures: 1, first: now, last: now }
  }

  respondedWithin(ms: number): boolean {
    return performance.now() - this.#succeededAt < ms
  }

  /**
   * True after at least five failures, if fewer than one statement in ten succeeded. With fewer requests:
   * true after three failures in two seconds or more, without a success between.
   */
  failing(): boolean {
    this.#rotate()
    const failed = this.#now.failed + this.#before.failed
    const succeeded = this.#now.succeeded + this.#before.succeeded
    if (failed >= 5 && failed > 9 * succeeded) return true
    const { failures, first, last } = this.#streak
    const isLong = failures >= 3 && last - first >= STREAK_MS
    return isLong && performance.now() - last < STREAK_END_MS
  }

  #rotate(): void {
    const age = performance.now() - this.#since
    if (age < HALF_MS) return
    this.#before = age < 2 * HALF_MS ? this.#now : { succeeded: 0, failed: 0 }
    this.#now = { succeeded: 0, failed: 0 }
    this.#since += age
  }
}
