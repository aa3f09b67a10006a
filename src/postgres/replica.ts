import { withDeadline } from '../limits/deadline.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { hasState, ServerFailed, SqlState } from './failures.ts'
import type { Reader } from './reader.ts'
import { Server, type ServerOptions, type ServerState } from './server.ts'
import { serverName } from './server-urls.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

/** Called when a replica is no longer used, with the reason, or is used again. */
export type OnReplicaChange = (name: string, unusableReason: string | undefined) => void

export interface ReplicaState extends ServerState {
  name: string
  unusableReason: string | undefined
}

/** Time without any response of a replica after which a read uses the primary, in ms. */
const SILENT_MS = 1_000
/** Time for which a replica is not used after a failure, in ms. One read then tries it. */
const UNUSED_MS = 5_000
/** Old versions in a row after which a replica is not used. Just after a change, each replica has an old version. */
const OLD_READS = 10

/** A standby that serves reads while it responds and has the newest data. */
export class Replica {
  readonly name: string
  readonly #server: Server
  readonly #onChange: OnReplicaChange
  #unusableReason: string | undefined
  #usableAt = 0
  #oldReads = 0

  constructor(options: ServerOptions, onChange: OnReplicaChange) {
    this.name = serverName(options.url)
    this.#server = new Server(options)
    this.#onChange = onChange
  }

  /** @returns undefined if the replica fails or has no room: the primary may succeed */
  async read(
    statement: Statement,
    values: Parameter[],
    reader: Reader,
  ): Promise<RawRows | undefined> {
    try {
      return await this.#untilSilent(this.#server.read(statement, values, reader))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      if (error instanceof ServerFailed && !hasState(error, SqlState.conflict))
        this.#set('it does not respond')
      return undefined
    }
  }

  /** Reports whether the rows of a read had the data version of the primary. */
  compared(isCurrent: boolean): void {
    this.#oldReads = isCurrent ? 0 : this.#oldReads + 1
    if (isCurrent) this.#set(undefined)
    else if (this.#oldReads >= OLD_READS) this.#set('it is behind the primary')
  }

  /** True if it is in use. Without success, one read at a time tries it again. */
  isUsable(): boolean {
    if (this.#unusableReason === undefined) return true
    if (performance.now() < this.#usableAt) return false
    this.#usableAt = performance.now() + UNUSED_MS
    return true
  }

  state(): ReplicaState {
    return { ...this.#server.state(), name: this.name, unusableReason: this.#unusableReason }
  }

  /** Replaces all connections. @throws Error if no new one can be opened; the others then stay */
  renew(): Promise<void> {
    return this.#server.renew()
  }

  close(): void {
    this.#server.close()
  }

  #set(reason: string | undefined): void {
    this.#usableAt = reason === undefined ? 0 : performance.now() + UNUSED_MS
    if (reason === this.#unusableReason) return
    this.#unusableReason = reason
    this.#onChange(this.name, reason)
  }

  /** Waits for a read while the server responds. @throws ServerFailed after SILENT_MS without any response */
  async #untilSilent(reading: Promise<RawRows>): Promise<RawRows> {
    for (;;) {
      const rows = await withDeadline(reading, SILENT_MS, () => undefined)
      if (rows !== undefined) return rows
      if (this.#server.state().quietMs >= SILENT_MS)
        throw new ServerFailed('the replica does not respond')
    }
  }
}
