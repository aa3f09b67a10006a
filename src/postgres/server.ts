import { type AdmissionOptions, createAdmission } from './concurrency.ts'
import { DatabaseUnavailable, isFaultOfHost, isTurnedAway } from './errors.ts'
import { openSessions, type SessionsOptions } from './pool.ts'
import type { Holding } from './response-memory.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

/**
 * Counts, over the last second, the statements that the database answered and those that it did not.
 * Requests that were sent away before it was asked are in neither: a service that sheds load is ready.
 */
export interface Tally {
  answered(): void
  failed(): void
  /** Whether it answered any in the last so many ms. */
  answeredWithin(ms: number): boolean
  /** Whether it answers next to nothing: five or more went without, and not one in ten was answered. */
  failing(): boolean
}

const HALF_MS = 500

function createTally(): Tally {
  let since = performance.now()
  let answeredAt = Number.NEGATIVE_INFINITY
  let now = { answered: 0, failed: 0 }
  let before = { answered: 0, failed: 0 }

  const turn = () => {
    const age = performance.now() - since
    if (age < HALF_MS) return
    before = age < 2 * HALF_MS ? now : { answered: 0, failed: 0 }
    now = { answered: 0, failed: 0 }
    since += age
  }
  return {
    answered: () => {
      turn()
      now.answered += 1
      answeredAt = performance.now()
    },
    failed: () => {
      turn()
      now.failed += 1
    },
    answeredWithin: (ms) => performance.now() - answeredAt < ms,
    failing: () => {
      turn()
      const failed = now.failed + before.failed
      return failed >= 5 && failed > 9 * (now.answered + before.answered)
    },
  }
}

export interface HostOptions extends SessionsOptions, Omit<AdmissionOptions, 'places'> {}

/** What a host is doing, for metrics. */
export interface HostState {
  /** Connections that are open, and those of them over which something is asked now. */
  connections: number
  inUse: number
  /** Requests that wait for their turn. */
  waiting: number
  /** Whether the server answered next to none of the statements of the last second. */
  failing: boolean
  /**
   * Whether a pooler stands between, where the service's own questions stand in a queue with the requests,
   * and some of these are answered.
   */
  queued: boolean
}

/** One PostgreSQL server, and our connections to it. */
export interface Host {
  /**
   * Runs a SELECT. Ends within waiting time, statement timeout and a second of grace, from when the
   * request began that the holding is of: reads of one request wait, all together, no longer than one.
   * @throws DatabaseUnavailable when no answer can be had within that time
   */
  read(statement: Statement, values: Parameter[], holding?: Holding): Promise<RawRows>
  /** The same for the service's own questions, which have a connection of their own and do not queue. */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows>
  state(): HostState
  close(): Promise<void>
}

/** While all connections are in use, as many again may gather for the next round trips. */
const READS_PER_CONNECTION = 2
/** The server ends a slow statement by itself; this much later, it is taken for dead. */
const GRACE_MS = 1_000
/**
 * How long the service's own questions take at most: a little longer than they may wait for a lock, and
 * so short that a look which began during an outage does not put off the next one.
 */
const PROBE_MS = 1_200

export function openHost(options: HostOptions): Host {
  const longestMs = options.statementTimeoutMs + GRACE_MS
  const admission = createAdmission({ ...options, places: READS_PER_CONNECTION * options.size })
  const sessions = openSessions(options, longestMs)
  const tally = createTally()
  /** Whether somebody was answered within the time that a statement may take. */
  const isAnswering = () => tally.answeredWithin(longestMs)
  /** While others are answered, those whom a pooler turns away are too many, and no fault of the server. */
  const judged = (error: unknown) =>
    isTurnedAway(error) && isAnswering()
      ? new DatabaseUnavailable('the pooler had no connection in time')
      : error

  return {
    read: async (statement, values, holding) => {
      if (holding?.over) throw new DatabaseUnavailable('the client is gone')
      if (holding?.reserve() === false) throw new DatabaseUnavailable('answers fill the memory')
      const since = holding?.since ?? performance.now()
      const due = since + options.waitMs + longestMs
      let inside = false
      try {
        await admission.enter(holding, since + options.waitMs - performance.now())
        inside = true
        // One of many rows would make those behind it wait.
        const ask = holding?.heavy ? sessions.askAlone : sessions.askTogether
        const rows = await ask(statement, { values, holding, due })
        tally.answered()
        return rows
      } catch (thrown) {
        const error = judged(thrown)
        if (isFaultOfHost(error) && !holding?.over) tally.failed()
        throw error
      } finally {
        holding?.unreserve()
        if (inside) admission.leave(holding)
      }
    },
    probe: (statement, values) => {
      const due = performance.now() + PROBE_MS
      return sessions.askAlone(statement, { values, holding: undefined, due })
    },
    state: () => {
      const { open: connections, inUse } = sessions.connections()
      const queued = options.pooler && isAnswering()
      return { connections, inUse, waiting: admission.waiting, failing: tally.failing(), queued }
    },
    close: sessions.close,
  }
}
