import { sql } from 'kysely'
import { withDeadline } from '../limits/deadline.ts'
import { ResponseTooLarge, Unavailable } from '../limits/errors.ts'
import { isSchemaBehind, isStandbyConflict, ServerFailed } from './errors.ts'
import { openServer, type PostgresServer, type ServerOptions, type ServerState } from './server.ts'
import { serverName } from './server-urls.ts'
import { compile } from './statements.ts'
import type { RawRows } from './wire/raw-rows.ts'

interface ReplicaOptions extends ServerOptions {
  /** Lag above which the replica is not used, in ms. */
  maxLagMs: number
  /** Called after the replica is excluded, and after it is used again. */
  onChange: (replica: ReplicaState) => void
}

export interface ReplicaState extends ServerState {
  name: string
  /** Reason why the replica is not used; undefined while it is used. */
  unusableReason: string | undefined
  /** Lag behind the primary at the last check, in ms; undefined if unknown. */
  lagMs: number | undefined
}

/** Time without a response after which a replica with reads in flight counts as silent, in ms. */
const SILENT_MS = 500
/** Maximum duration of a check, in ms. */
const CHECK_MS = 1_000

export type Replica = ReturnType<typeof openReplica>

/** Opens a standby that serves reads while it responds and its lag is small enough. */
export function openReplica(options: ReplicaOptions) {
  const server = openServer(options)
  const name = serverName(options.url)
  /** Reads in flight in order of arrival, with the start time of each. */
  const inFlight = new Map<(error: Error) => void, number>()
  let respondedAt = 0
  let unusableReason: string | undefined = 'it was not checked yet'
  let lagMs: number | undefined

  const state = (): ReplicaState => ({ name, unusableReason, lagMs, ...server.state() })
  const set = (reason: string | undefined) => {
    if (reason === unusableReason) return
    unusableReason = reason
    options.onChange(state())
    if (reason === undefined) return
    for (const reject of inFlight.keys())
      reject(new ServerFailed(`the replica is not used: ${reason}`))
  }
  const measure = async (meter: LagMeter) => {
    lagMs = undefined
    const { standby, reached } = await withDeadline(walPosition(server), CHECK_MS, () => {
      throw new Unavailable('no response in time')
    })
    if (!standby || reached === undefined) return 'it is not a standby'
    lagMs = meter.lag(reached)
    return lagMs > options.maxLagMs ? 'it is too far behind' : undefined
  }
  const isSilent = () => {
    const [oldest] = inFlight.values()
    return oldest !== undefined && performance.now() - Math.max(oldest, respondedAt) > SILENT_MS
  }
  /** Turns failures into ServerFailed if another server may succeed. */
  const classify = (error: Error): Error => {
    if (!(error instanceof Unavailable) || error instanceof ResponseTooLarge) return error
    const { cause } = error
    const isAlive = isStandbyConflict(cause) || isSchemaBehind(cause)
    if (!isAlive && (error instanceof ServerFailed || isSilent())) set('it does not respond')
    // The primary may have room for a read that an overloaded replica rejects.
    return new ServerFailed(error.message, { cause })
  }
  /** @returns undefined if the replica fails, or is excluded while the read is in flight */
  const read = (...query: Parameters<PostgresServer['read']>): Promise<RawRows | undefined> =>
    new Promise<RawRows>((resolve, reject) => {
      inFlight.set(reject, performance.now())
      const succeed = (rows: RawRows) => {
        respondedAt = performance.now()
        resolve(rows)
      }
      server
        .read(...query)
        .then(succeed, (error) => reject(classify(error)))
        .finally(() => inFlight.delete(reject))
    }).catch((error: unknown) => {
      if (error instanceof ServerFailed) return undefined
      throw error
    })
  return {
    name,
    read,
    usable: () => unusableReason === undefined && !isSilent(),
    check: (meter: LagMeter) => measure(meter).then(set, () => set('it does not respond')),
    state,
    renew: server.renew,
    close: server.close,
  }
}

/** Checks all replicas of a primary every `everyMs`. This is also the resolution of the lag. */
export function watchReplicas(primary: PostgresServer, all: Replica[], everyMs: number) {
  const meter = new LagMeter()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const check = async () => {
    const { reached } = await walPosition(primary).catch(() => ({ reached: undefined }))
    // Without a response of the primary, the meter uses its last known position.
    if (reached !== undefined) meter.mark(reached)
    await Promise.all(all.map((replica) => replica.check(meter)))
    if (!closed) timer = setTimeout(check, everyMs).unref()
  }
  if (all.length > 0) void check()
  return {
    /** Chooses a usable replica by a SHA-256. A key keeps its replica, so replicas cache different shares. */
    nearest: (key: Buffer) => {
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

/** Rendezvous hashing: of the usable replicas, the one with the highest score serves the key. */
function scoreOf(key: Buffer, index: number): number {
  return (key.readUInt32LE((index % 8) * 4) ^ Math.imul(index, 0x9e3779b1)) >>> 0
}

/** Maximum age of a mark, in ms. The lag of a replica behind all marks is infinite. */
const HISTORY_MS = 600_000

/** Measures replica lag without the replica's clock, settings or privileges. */
class LagMeter {
  /** Positions of the primary, each with the time of its last check. */
  readonly #marks: { at: number; reached: bigint }[] = []

  mark(reached: bigint): void {
    const at = performance.now()
    const last = this.#marks.at(-1)
    // The position of an idle primary does not change: only the newest time counts.
    if (last?.reached === reached) last.at = at
    else this.#marks.push({ at, reached })
    if (this.#marks[0] && at - this.#marks[0].at > HISTORY_MS) this.#marks.shift()
  }

  /**
   * Maximum possible lag in ms: the time since the primary was last seen at this position. It is 0 if the
   * replica is at the last known position, also while the primary is idle.
   */
  lag(reached: bigint): number {
    const newest = this.#marks.at(-1)
    const seen = this.#marks.findLast((mark) => mark.reached <= reached)
    return newest && seen ? newest.at - seen.at : Number.POSITIVE_INFINITY
  }
}

export const walPositionStatement = compile(
  'WAL position',
  'Reads the position of a server in the write-ahead log, in bytes.',
  sql`
    select pg_is_in_recovery(), pg_wal_lsn_diff(
      case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
      '0/0')`,
)

/** Reads the position of a server in the write-ahead log, in bytes. */
async function walPosition(server: PostgresServer) {
  const [standby, reached] = (await server.probe(walPositionStatement, [])).shift() ?? []
  return { standby: standby === 't', reached: reached ? BigInt(reached) : undefined }
}
