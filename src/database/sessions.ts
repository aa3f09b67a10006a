import { createBatches } from './batches.ts'
import { createPool, type PoolOptions, type SessionPool } from './pool.ts'
import type { RawRows } from './raw-rows.ts'
import { type Attempt, roundTrip } from './round-trip.ts'
import { type Statement, unnamed } from './statement.ts'
import {
  DatabaseUnavailable,
  HostFailed,
  HostSilent,
  isBroken,
  isPassing,
  isStandbyConflict,
  isTurnedAway,
  isUnusable,
} from './unavailable.ts'

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
