import type pg from 'pg'
import { type AdmissionOptions, createAdmission } from './admission.ts'
import type { Holding } from './answer-memory.ts'
import { createPool, type PoolOptions } from './pool.ts'
import { RawRows } from './raw-rows.ts'
import { type Parameter, runStatement, type Statement } from './statement.ts'
import { createTally } from './tally.ts'
import {
  DatabaseUnavailable,
  HostFailed,
  HostSilent,
  isBroken,
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
  /** Whether next to no request of the last second got an answer. */
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

interface Attempt {
  statement: Statement
  values: Parameter[]
  holding: Holding | undefined
  /** When the answer is due, on performance.now()'s clock. */
  due: number
}

export function openHost(options: HostOptions): Host {
  const admission = createAdmission({ ...options, places: options.size })
  const tally = createTally()
  const longestMs = options.statementTimeoutMs + GRACE_MS
  let pool = createPool(options)

  // Where one connection broke or fell silent, those beside it may be as dead without knowing it yet.
  const renew = (worn: pg.Pool) => {
    if (worn !== pool) return
    pool = createPool(options)
    worn.end().catch(() => {})
  }
  const attempt = async (what: Attempt): Promise<RawRows> => {
    const from = pool
    try {
      return await onClient(from, what, longestMs)
    } catch (error) {
      if (isBroken(error) || error instanceof HostSilent) renew(from)
      throw error
    }
  }
  // Reading twice does no harm, and a connection that was cut says nothing of the next one.
  const attempts = (what: Attempt) =>
    attempt(what).catch((error) => {
      const again = isBroken(error) || isStandbyConflict(error)
      if (again && performance.now() < what.due) return attempt(what)
      throw error
    })
  const run = async (
    statement: Statement,
    values: Parameter[],
    holding: Holding | undefined,
    withinMs: number,
  ) => {
    const named = options.prepare ? statement : { ...statement, name: '' }
    const due = performance.now() + withinMs
    try {
      return await attempts({ statement: named, values, holding, due })
    } catch (error) {
      if (error instanceof DatabaseUnavailable || !isPassing(error)) throw error
      const Failure = isBroken(error) || isStandbyConflict(error) ? HostFailed : DatabaseUnavailable
      throw new Failure('the database did not answer', { cause: error })
    }
  }

  return {
    read: async (statement, values, holding) => {
      if (holding && !holding.welcome) throw new DatabaseUnavailable('answers fill the memory')
      try {
        await admission.enter(holding)
        const rows = await run(statement, values, holding, options.waitMs + longestMs).finally(() =>
          admission.leave(holding),
        )
        tally.answered()
        return rows
      } catch (error) {
        if (error instanceof DatabaseUnavailable && !holding?.over) tally.failed()
        throw error
      }
    },
    probe: (statement, values) => run(statement, values, undefined, options.waitMs + GRACE_MS),
    state: () => ({
      inUse: admission.inside,
      waiting: admission.waiting,
      connections: pool.totalCount,
      failing: tally.failing(),
    }),
    close: () => pool.end(),
  }
}

/** A client goes back to the pool, unless it, or the server behind it, can no longer be trusted. */
async function onClient(
  pool: pg.Pool,
  { statement, values, holding, due }: Attempt,
  longestMs: number,
): Promise<RawRows> {
  const client = await pool.connect().catch((cause) => {
    throw new HostFailed('no connection to the database', { cause })
  })
  let spoilt: Error | undefined
  const silence = new HostSilent('the database stopped answering')
  const timer = setTimeout(
    () => client.connection.stream.destroy(silence),
    Math.min(longestMs, due - performance.now()),
  )
  const run = (named: Statement) => runStatement(client, named, values, new RawRows(holding))
  try {
    return await run(statement).catch((error) => {
      if (!isLostPlan(error)) throw error
      spoilt = error as Error
      return run({ ...statement, name: '' })
    })
  } catch (error) {
    if (isBroken(error) || error instanceof HostSilent) spoilt = error as Error
    throw error
  } finally {
    clearTimeout(timer)
    client.release(spoilt)
  }
}
