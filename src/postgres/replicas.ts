import { withDeadline } from '../limits/deadline.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { hasState, ServerFailed, SqlState } from './failures.ts'
import {
  openServer,
  type PostgresServer,
  type ServerOptions,
  type ServerState,
} from './postgres-server.ts'
import { serverName } from './server-urls.ts'
import type { RawRows } from './wire/query.ts'

export interface ReplicaState extends ServerState {
  name: string
  /** Reason why the replica is not used; undefined while it is used. */
  unusableReason: string | undefined
}

/** Time without any response of a replica after which a read uses the primary, in ms. */
const SILENT_MS = 1_000
/** Time for which a replica is not used after a failure, in ms. One read then tries it. */
const UNUSED_MS = 5_000
/** Old versions in a row after which a replica is not used. Just after a change, each replica has an old version. */
const OLD_READS = 10

export type Replica = ReturnType<typeof openReplica>

/** Opens a standby that serves reads while it responds and has the newest data. */
export function openReplica(options: ServerOptions, onChange: (state: ReplicaState) => void) {
  const server = openServer(options)
  const name = serverName(options.url)
  let unusableReason: string | undefined
  let usableAt = 0
  let oldReads = 0

  const state = (): ReplicaState => ({ name, unusableReason, ...server.state() })
  const set = (reason: string | undefined) => {
    usableAt = reason === undefined ? 0 : performance.now() + UNUSED_MS
    if (reason === unusableReason) return
    unusableReason = reason
    onChange(state())
  }
  /** @returns undefined if the replica becomes silent */
  const readInTime = async (...query: Parameters<PostgresServer['read']>) => {
    const reading = server.read(...query)
    let rows: RawRows | undefined
    do rows = await withDeadline(reading, SILENT_MS, () => undefined)
    while (rows === undefined && server.state().quietMs < SILENT_MS)
    if (rows === undefined) reading.catch(() => {})
    return rows
  }
  return {
    name,
    /** @returns undefined if the replica fails or has no room: the primary may succeed */
    read: async (...query: Parameters<PostgresServer['read']>): Promise<RawRows | undefined> => {
      try {
        const rows = await readInTime(...query)
        if (rows === undefined) set('it does not respond')
        return rows
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        if (error instanceof ServerFailed && !hasState(error, SqlState.conflict))
          set('it does not respond')
        return undefined
      }
    },
    /** Reports whether the rows of a read had the data version of the primary. */
    compared: (isCurrent: boolean) => {
      oldReads = isCurrent ? 0 : oldReads + 1
      if (isCurrent) set(undefined)
      else if (oldReads >= OLD_READS) set('it is behind the primary')
    },
    /** True if it is in use. Without success, one read at a time tries it again. */
    isUsable: () => {
      if (unusableReason === undefined) return true
      if (performance.now() < usableAt) return false
      usableAt = performance.now() + UNUSED_MS
      return true
    },
    state,
    renew: server.renew,
    close: server.close,
  }
}
