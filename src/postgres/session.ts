import { ServerFailed } from './failures.ts'
import type { Read } from './read.ts'
import type { Statement } from './statements.ts'
import type { WireClient } from './wire/client.ts'
import { RawQuery, RawRows } from './wire/query.ts'

/** Time without a completed read after which a session gets no further reads, in ms. */
const STALLED_MS = 250

/** Called once for each read: with an error, or with all its rows. `ms` is the time for which PostgreSQL worked on it. */
export type OnReadEnd = (read: Read, ms: number, error: Error | undefined, rows: RawRows) => void

/** A connection and the reads in flight on it. PostgreSQL runs them one after the other. */
export class Session {
  readonly client: WireClient
  readonly #depth: number
  /** The oldest one first. A Set would keep reads that have ended (see Bag). */
  readonly #reads: Read[] = []
  #isClosing = false
  #progressAt = performance.now()

  /** @param depth maximum number of reads in flight */
  constructor(client: WireClient, depth: number) {
    this.client = client
    this.#depth = depth
  }

  /** Number of reads in flight. */
  get size(): number {
    return this.#reads.length
  }

  /** The reads in flight, in the order in which PostgreSQL runs them. */
  get reads(): Iterable<Read> {
    return this.#reads
  }

  get oldest(): Read | undefined {
    return this.#reads[0]
  }

  /** True if it takes no further read, and closes after its last one. */
  get isClosing(): boolean {
    return this.#isClosing
  }

  /** Time of the end of the last read, or of the start of the first one. */
  get progressAt(): number {
    return this.#progressAt
  }

  get hasRoom(): boolean {
    return !this.#isClosing && !this.oldest?.isExclusive && this.size < this.#depth
  }

  /** True if reads are in flight, and none has ended for a while. */
  get isStalled(): boolean {
    return this.size > 0 && performance.now() - this.#progressAt >= STALLED_MS
  }

  /** Sends a read. */
  start(read: Read, statement: Statement, ended: OnReadEnd): void {
    read.sentAt = performance.now()
    if (this.size === 0) this.#progressAt = read.sentAt
    this.#reads.push(read)
    const rows = new RawRows(statement.singleRow ? undefined : read.reader?.memory)
    const query = new RawQuery(statement, read.values, rows, (error) => {
      // The reads of an abandoned session have failed or moved to another one.
      if (!this.#remove(read)) return
      const now = performance.now()
      const ms = now - this.#progressAt
      this.#progressAt = now
      ended(read, ms, error, rows)
    })
    this.client.query(query)
  }

  /** @returns false if it is not in flight here */
  #remove(read: Read): boolean {
    const index = this.#reads.indexOf(read)
    if (index >= 0) this.#reads.splice(index, 1)
    return index >= 0
  }

  /** Takes no further read of the pool. The caller retires it. */
  drain(): void {
    this.#isClosing = true
  }

  /** Takes no further read, and closes if none is in flight. @returns true if it is closed */
  retire(): boolean {
    this.#isClosing = true
    if (this.size > 0) return false
    this.client.leave()
    return true
  }

  /** Closes the connection at once. @returns the reads in flight, and the error that they end with */
  abandon(): { error: ServerFailed; reads: Read[] } {
    const error = new ServerFailed('the database stopped responding')
    const reads = this.#reads.splice(0)
    this.#isClosing = true
    this.client.destroy(error)
    return { error, reads }
  }
}
