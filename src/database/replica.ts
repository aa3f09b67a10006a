import type { Holding } from './answer-memory.ts'
import { type HostOptions, type HostState, openHost } from './host.ts'
import type { RawRows } from './raw-rows.ts'
import type { LagMeter } from './replica-lag.ts'
import type { Parameter, Statement } from './statement.ts'
import {
  DatabaseUnavailable,
  HostFailed,
  isSchemaBehind,
  isStandbyConflict,
} from './unavailable.ts'
import { walPosition } from './wal-position.ts'

export interface ReplicaOptions extends HostOptions {
  /** A replica that is further behind the primary is left out, in ms. */
  maxLagMs: number
  /** Told whenever a replica is left out or taken in again. */
  onChange: (replica: ReplicaState) => void
}

export interface ReplicaState extends HostState {
  /** host:port */
  name: string
  /** Why it is left out; undefined while it is read from. */
  fault: string | undefined
  /** How far it was behind the primary at the last look, in ms; undefined where that is not known. */
  lagMs: number | undefined
}

/** A standby that is read from while it is up and near enough to its primary. */
export interface Replica {
  /** @throws HostFailed, too, as soon as the replica is left out while it still has to answer */
  read(statement: Statement, values: Parameter[], holding?: Holding): Promise<RawRows>
  /** Whether it may be read from: not before the first look at it. */
  usable(): boolean
  /** Asks it how far it has come, and decides whether it is left out. */
  look(meter: LagMeter): Promise<void>
  state(): ReplicaState
  close(): Promise<void>
}

export function openReplica(options: ReplicaOptions): Replica {
  const host = openHost(options)
  const { hostname, port } = new URL(options.url)
  // Those who wait, in the order in which they came, and since when.
  const unanswered = new Map<(error: Error) => void, number>()
  let answeredAt = 0
  let fault: string | undefined = 'it was not looked at yet'
  let lagMs: number | undefined

  const state = () => ({ name: `${hostname}:${port || 5432}`, fault, lagMs, ...host.state() })
  const judge = (found: string | undefined) => {
    if (found === fault) return
    fault = found
    options.onChange(state())
    if (fault === undefined) return
    for (const reject of unanswered.keys())
      reject(new HostFailed(`the replica is left out: ${fault}`))
  }
  const measure = async (meter: LagMeter) => {
    lagMs = undefined
    const { standby, reached } = await inTime(walPosition(host))
    if (!standby || reached === undefined) return 'it does not replay the log of another server'
    lagMs = meter.behind(reached)
    return lagMs > options.maxLagMs ? 'it is too far behind' : undefined
  }
  const silent = () => {
    const [oldest] = unanswered.values()
    return oldest !== undefined && performance.now() - Math.max(oldest, answeredAt) > SILENT_MS
  }
  /** What another server can answer is a HostFailed, and only what this one cannot leaves it out. */
  const failure = (error: Error): Error => {
    if (!(error instanceof DatabaseUnavailable) || isStandbyConflict(error.cause)) return error
    if (isSchemaBehind(error.cause)) return new HostFailed(error.message, { cause: error.cause })
    if (!(error instanceof HostFailed) && !silent()) return error
    judge('it does not answer')
    return new HostFailed(error.message, { cause: error.cause })
  }
  const read: Replica['read'] = (statement, values, holding) =>
    new Promise((resolve, reject) => {
      unanswered.set(reject, performance.now())
      const answered = (rows: RawRows) => {
        answeredAt = performance.now()
        resolve(rows)
      }
      host
        .read(statement, values, holding)
        .then(answered, (error) => reject(failure(error)))
        .finally(() => unanswered.delete(reject))
    })
  return {
    read,
    usable: () => fault === undefined && !silent(),
    look: (meter) => measure(meter).then(judge, () => judge('it does not answer')),
    state,
    close: () => host.close(),
  }
}

/** A replica that owes answers and has given none for so long hangs, or may as well, in ms. */
const SILENT_MS = 500
/** A look that takes longer than this is one that failed, in ms. */
const LOOK_MS = 1_000

async function inTime<T>(promise: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new DatabaseUnavailable('no answer in time')), LOOK_MS)
  return await Promise.race([promise, late.promise]).finally(() => clearTimeout(timer))
}
