import { sql } from 'kysely'
import { DatabaseUnavailable, HostFailed, isSchemaBehind, isStandbyConflict } from './errors.ts'
import type { Holding } from './response-memory.ts'
import type { Host } from './server.ts'
import { type HostOptions, type HostState, openHost } from './server.ts'
import type { Parameter, Statement } from './statements.ts'
import { build, compile } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

/** How far a replica is behind, found without its clock, its settings or any right on it. */
export interface LagMeter {
  /** Notes where the primary is. */
  mark(reached: bigint): void
  /**
   * @returns ms since the primary was last where the replica is now, at most; 0 is a replica that has all
   * that the primary had when it was asked last, also where the primary has had nothing to do since
   */
  behind(reached: bigint): number
}

/** How long marks are kept: a replica that is further behind is merely that far behind. */
const HISTORY_MS = 600_000

function createLagMeter(): LagMeter {
  let marks: { at: number; reached: bigint }[] = []
  return {
    mark(reached) {
      const at = performance.now()
      const last = marks.at(-1)
      // An idle primary stands still; then the newest time at which it stood there is what counts.
      if (last?.reached === reached) last.at = at
      else marks.push({ at, reached })
      if (marks[0] && at - marks[0].at > HISTORY_MS) marks = marks.slice(1)
    },
    behind(reached) {
      const newest = marks.at(-1)
      if (newest === undefined) return Number.POSITIVE_INFINITY
      const seen = marks.findLast((mark) => mark.reached <= reached)
      return seen === undefined ? Number.POSITIVE_INFINITY : newest.at - seen.at
    },
  }
}

const position = compile(
  'position in the log',
  sql`${build.selectNoFrom([
    sql`pg_is_in_recovery()`.as('standby'),
    sql`case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end`.as(
      'reached',
    ),
  ])}`,
)

/** How far a server has come in the write-ahead log. */
export interface WalPosition {
  /** Whether it replays another server's log. */
  standby: boolean
  /** Bytes since the beginning of the log, undefined where the server does not tell. */
  reached: bigint | undefined
}

/** @throws DatabaseUnavailable */
async function walPosition(host: Host): Promise<WalPosition> {
  const [standby, reached] = (await host.probe(position, [])).shift() ?? []
  return { standby: standby === 't', reached: reached ? bytesOf(reached) : undefined }
}

/** From PostgreSQL's notation, two hexadecimal words: `16/B374D848`. */
function bytesOf(position: string): bigint {
  const [high, low] = position.split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}

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

/** All replicas of a primary, each looked at every now and then. */
export interface Replicas {
  /**
   * A replica that can be used, the same one for the same key as long as it stays so: the pages of one
   * connection come from one server, whose memory then fills with its own share of the data.
   * @param key at least 32 bytes that are spread evenly, such as a SHA-256
   */
  nearest(key: Buffer): Replica | undefined
  close(): void
}

/** @param everyMs how often the replicas are looked at; the lag is measured no finer than that */
export function watchReplicas(primary: Host, all: Replica[], everyMs: number): Replicas {
  const meter = createLagMeter()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const look = async () => {
    const { reached } = await walPosition(primary).catch(() => ({ reached: undefined }))
    // Where the primary does not answer, a replica is held against the place where it was last.
    if (reached !== undefined) meter.mark(reached)
    await Promise.all(all.map((replica) => replica.look(meter)))
    if (!closed) timer = setTimeout(look, everyMs).unref()
  }
  if (all.length > 0) void look()
  return {
    nearest: (key) => {
      let best: Replica | undefined
      let highest = -1
      for (const [index, replica] of all.entries()) {
        const score = scoreOf(key, index)
        if (score <= highest || !replica.usable()) continue
        best = replica
        highest = score
      }
      return best
    },
    close: () => {
      closed = true
      clearTimeout(timer)
    },
  }
}

/** Each pair of key and replica has its own; the highest wins, and when that one is out, the next. */
function scoreOf(key: Buffer, index: number): number {
  return (key.readUInt32LE((index % 8) * 4) ^ Math.imul(index, 0x9e3779b1)) >>> 0
}
