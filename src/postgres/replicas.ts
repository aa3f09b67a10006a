import { withDeadline } from '../limits/deadline.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { isSchemaBehind, isStandbyConflict, ServerFailed, ServerSilent } from './failures.ts'
import {
  openServer,
  type PostgresServer,
  type ServerOptions,
  type ServerState,
} from './postgres-server.ts'
import { serverName } from './server-urls.ts'
import type { RawRows } from './wire/raw-rows.ts'

export interface ReplicaState extends ServerState {
  name: string
  /** Reason why the replica is not used; undefined while it is used. */
  unusableReason: string | undefined
}

/** Time without any response of a replica after which a read uses the primary, in ms. */
const SILENT_MS = 1_000
/** Time for which a replica is not used after a failure, in ms. One read then tries it. */
const UNUSED_MS = 5_000
/** A read just after a change finds an old version on each replica. Only a replica that is behind does so always. */
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
  const readInTime = async (...query: Parameters<PostgresServer['read']>): Promise<RawRows> => {
    const reading = server.read(...query)
    for (;;) {
      const rows = await withDeadline(reading, SILENT_MS, () => undefined)
      if (rows !== undefined) return rows
      if (server.state().quietMs < SILENT_MS) continue
      reading.catch(() => {})
      throw new ServerSilent('the replica does not respond')
    }
  }
  return {
    name,
    /** @returns undefined if the replica fails or has no room: the primary may succeed */
    read: async (...query: Parameters<PostgresServer['read']>): Promise<RawRows | undefined> => {
      try {
        return await readInTime(...query)
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        const isAlive = isStandbyConflict(error.cause) || isSchemaBehind(error.cause)
        if (error instanceof ServerFailed && !isAlive) set('it does not respond')
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

/** Returns a function that chooses usable replicas in turn. */
export function takeTurns(all: Replica[]): () => Replica | undefined {
  let turn = 0
  return () => {
    for (const _ of all) {
      turn = (turn + 1) % all.length
      if (all[turn]?.isUsable()) return all[turn]
    }
    return undefined
  }
}
