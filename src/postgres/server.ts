import { type ConcurrencyOptions, createConcurrencyLimit } from './concurrency.ts'
import { DatabaseUnavailable, isPoolerTimeout, isServerFailure } from './errors.ts'
import { openPipeline, type PipelineOptions } from './pipeline.ts'
import type { MemoryReservation } from './response-memory.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

export interface ServerOptions extends PipelineOptions, Omit<ConcurrencyOptions, 'places'> {}

/** State of a server, for metrics. */
export interface ServerState {
  /** Open connections, and those of them that are in use. */
  connections: number
  inUse: number
  /** Requests that wait for a place. */
  waiting: number
  /** True where the server answered almost none of the last second's statements. */
  failing: boolean
  /** True behind PgBouncer while it answers: probes may queue behind requests. */
  queued: boolean
}

/** One PostgreSQL server. */
export interface PostgresServer {
  /**
   * Runs a SELECT. All reads of one request end within the wait, the statement timeout and a second,
   * counted from the start of the request (`reservation.since`).
   * @throws DatabaseUnavailable where no response arrives in time
   */
  read(statement: Statement, values: Parameter[], reservation?: MemoryReservation): Promise<RawRows>
  /** Runs one of the service's own statements on a reserved connection, without a queue. */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows>
  state(): ServerState
  close(): Promise<void>
}

/** Reads in flight for each connection, on average. More would only wait in PostgreSQL's sockets. */
const READS_PER_CONNECTION = 2
/** PostgreSQL ends a slow statement by itself. This much later it counts as down. */
const GRACE_MS = 1_000
/** Longest probe, in ms: a little above lock_timeout, so that a late one does not delay the next. */
const PROBE_MS = 1_200

export function openServer(options: ServerOptions): PostgresServer {
  const silentMs = options.statementTimeoutMs + GRACE_MS
  const limit = createConcurrencyLimit({ ...options, places: READS_PER_CONNECTION * options.size })
  const pipeline = openPipeline(options, silentMs)
  const rate = createFailureRate()
  const isAnswering = () => rate.answeredWithin(silentMs)
  /** While PgBouncer answers others, its timeout means overload, not a failed server. */
  const classify = (error: unknown) =>
    isPoolerTimeout(error) && isAnswering()
      ? new DatabaseUnavailable('the pooler had no connection in time')
      : error

  return {
    read: async (statement, values, reservation) => {
      if (reservation?.ended) throw new DatabaseUnavailable('the client is gone')
      if (reservation?.setAside() === false) {
        throw new DatabaseUnavailable('responses fill the memory')
      }
      const since = reservation?.since ?? performance.now()
      const due = since + options.waitMs + silentMs
      let entered = false
      try {
        await limit.enter(reservation, since + options.waitMs - performance.now())
        entered = true
        const alone = reservation?.large === true
        const rows = await pipeline.read(statement, values, { reservation, due, alone })
        rate.answered()
        return rows
      } catch (thrown) {
        const error = classify(thrown)
        if (isServerFailure(error) && !reservation?.ended) rate.failed()
        throw error
      } finally {
        reservation?.releaseSetAside()
        if (entered) limit.leave(reservation)
      }
    },
    probe: (statement, values) =>
      pipeline.probe(statement, values, { due: performance.now() + PROBE_MS }),
    state: () => {
      const { open: connections, inUse } = pipeline.connections()
      const queued = options.pooler && isAnswering()
      return { connections, inUse, waiting: limit.waiting, failing: rate.failing(), queued }
    },
    close: pipeline.close,
  }
}

/**
 * Counts the statements of the last second that the server answered, and those that it did not.
 * Requests rejected before they reach the database are not counted.
 */
interface FailureRate {
  answered(): void
  failed(): void
  answeredWithin(ms: number): boolean
  /** True after five or more failures, where fewer than one statement in ten was answered. */
  failing(): boolean
}

const HALF_MS = 500

function createFailureRate(): FailureRate {
  let since = performance.now()
  let answeredAt = Number.NEGATIVE_INFINITY
  let now = { answered: 0, failed: 0 }
  let before = { answered: 0, failed: 0 }

  const rotate = () => {
    const age = performance.now() - since
    if (age < HALF_MS) return
    before = age < 2 * HALF_MS ? now : { answered: 0, failed: 0 }
    now = { answered: 0, failed: 0 }
    since += age
  }
  return {
    answered: () => {
      rotate()
      now.answered += 1
      answeredAt = performance.now()
    },
    failed: () => {
      rotate()
      now.failed += 1
    },
    answeredWithin: (ms) => performance.now() - answeredAt < ms,
    failing: () => {
      rotate()
      const failed = now.failed + before.failed
      return failed >= 5 && failed > 9 * (now.answered + before.answered)
    },
  }
}
