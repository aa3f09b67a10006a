import type pg from 'pg'
import { type AdmissionOptions, createAdmission } from './admission.ts'
import type { Holding } from './answer-memory.ts'
import { type Read, runBatch } from './batch-query.ts'
import { createBatches } from './batches.ts'
import { createPool, type PoolOptions } from './pool.ts'
import type { RawRows } from './raw-rows.ts'
import type { Parameter, Statement } from './statement.ts'
import { createTally } from './tally.ts'
import {
  DatabaseUnavailable,
  HostFailed,
  HostSilent,
  isBroken,
  isFaultOfHost,
  isLostPlan,
  isPassing,
  isStandbyConflict,
} from './unavailable.ts'

export interface HostOptions extends PoolOptions, Omit<AdmissionOptions, 'places'> {
  /** Whether statements are prepared by name; a pooler may not carry that (PgBouncer before 1.21). */
  prepare: boolean
}

/** What a host is doing, for metrics. */
export interface HostState {
  /** Statements that run now, and requests that wait for a connection. */
  inUse: number
  waiting: number
  /** Connections that are open. */
  connections: number
  /** Whether the server answered next to none of the statements of the last second. */
  failing: boolean
}

/** One PostgreSQL server, and our connections to it. */
export interface Host {
  /**
   * Runs a SELECT. Ends within waiting time, statement timeout and a second of grace.
   * @throws DatabaseUnavailable when no answer can be had within that time
   */
  read(statement: Statement, values: Parameter[], holding?: Holding): Promise<RawRows>
  /** The same for the service's own questions, which have a connection of their own and do not queue. */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows>
  state(): HostState
  close(): Promise<void>
}

/** The server ends a slow statement by itself; this much later, it is taken for dead. */
const GRACE_MS = 1_000
/**
 * How long the service's own questions take at most: a little longer than they may wait for a lock, and
 * so short that a look which began during an outage does not put off the next one.
 */
const PROBE_MS = 1_200
/** A server that had less time than this to answer has not been silent. */
const FAIR_MS = 100

/** One attempt at the read of a request. */
interface Attempt extends Read {
  /** When the answer is due, on performance.now()'s clock. */
  due: number
}

type Submit = (statement: Statement, read: Attempt) => void

type Request = Pick<Read, 'values' | 'holding'>

/** Nothing is wrong with this read: it stood behind one that failed. */
class NotRun extends Error {
  override name = 'NotRun'
}

export function openHost(options: HostOptions): Host {
  const admission = createAdmission({ ...options, places: options.size })
  const tally = createTally()
  const longestMs = options.statementTimeoutMs + GRACE_MS
  let pool = createPool(options)

  const send = async (statement: Statement, reads: Attempt[]) => {
    const from = pool
    const since = performance.now()
    const named = options.prepare ? statement : unnamed(statement)
    const error = await onClient(from, named, reads, longestMs).catch((error: Error) => error)
    if (error === undefined) return
    // Where one connection broke or fell silent, those beside it may be as dead without knowing it yet.
    const silent = error instanceof HostSilent && from.heardAt < since
    if (from === pool && (silent || isBroken(error))) {
      pool = createPool(options)
      if (silent) from.abandon()
      else from.end().catch(() => {})
    }
    reads.shift()?.reject(error)
    for (const read of reads) read.reject(isUnusable(error) ? error : new NotRun())
  }
  const batched: Submit = createBatches(send)
  const alone: Submit = (statement, read) => send(statement, [read])
  const run = async (statement: Statement, request: Request, due: number, submit: Submit) => {
    const attempt = (how: Submit) =>
      new Promise<RawRows>((resolve, reject) => {
        how(statement, { ...request, due, resolve, reject })
      })
    try {
      return await attempt(submit).catch((error) => {
        // Reading twice does no harm, and a connection that was cut says nothing of the next one.
        const again = isBroken(error) || isStandbyConflict(error)
        if (again && performance.now() < due) return attempt(alone)
        throw error
      })
    } catch (error) {
      if (error instanceof DatabaseUnavailable || !isPassing(error)) throw error
      const Failure = isBroken(error) || isStandbyConflict(error) ? HostFailed : DatabaseUnavailable
      throw new Failure('the database did not answer', { cause: error })
    }
  }

  return {
    read: async (statement, values, holding) => {
      if (holding && !holding.welcome) throw new DatabaseUnavailable('answers fill the memory')
      const due = performance.now() + options.waitMs + longestMs
      // Who is sent away here says nothing of the database, only that much is asked of it.
      await admission.enter(holding)
      try {
        // One of many rows would make those behind it wait.
        const submit = holding?.heavy ? alone : batched
        const rows = await run(statement, { values, holding }, due, submit)
        tally.answered()
        return rows
      } catch (error) {
        if (isFaultOfHost(error) && !holding?.over) tally.failed()
        throw error
      } finally {
        admission.leave(holding)
      }
    },
    probe: (statement, values) =>
      run(statement, { values, holding: undefined }, performance.now() + PROBE_MS, alone),
    state: () => ({
      inUse: admission.inside,
      waiting: admission.waiting,
      connections: pool.totalCount,
      failing: tally.failing(),
    }),
    close: () => pool.end(),
  }
}

/** Whether nothing more can come over the connection. */
const isUnusable = (error: unknown) => isBroken(error) || error instanceof DatabaseUnavailable

const unnamed = (statement: Statement): Statement => ({ ...statement, name: '' })

/**
 * Takes each read that is answered out of `reads`, and returns the error that kept the others from it. A
 * client goes back to the pool, unless it, or the server behind it, can no longer be trusted.
 */
async function onClient(
  pool: pg.Pool,
  statement: Statement,
  reads: Attempt[],
  longestMs: number,
): Promise<Error | undefined> {
  const client = await pool.connect().catch((cause) => {
    throw new HostFailed('no connection to the database', { cause })
  })
  const left = Math.min(...reads.map((read) => read.due)) - performance.now()
  if (left < FAIR_MS) {
    client.release()
    throw new HostFailed('the connection to the database came too late')
  }
  const asked = reads.length
  const giveUp = () => {
    // A server that has answered some of them is not dead, but too slow.
    const Failure = reads.length === asked ? HostSilent : DatabaseUnavailable
    client.connection.stream.destroy(new Failure('the database stopped answering'))
  }
  const timer = setTimeout(giveUp, Math.min(longestMs, left))
  const first = await runBatch(client, statement, reads)
  const lostPlan = isLostPlan(first)
  const error = lostPlan ? await runBatch(client, unnamed(statement), reads) : first
  clearTimeout(timer)
  client.release(lostPlan || isUnusable(error))
  return error
}
