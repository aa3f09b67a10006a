import { Bag } from '../limits/bag.ts'
import { FairQueue } from '../limits/fair-queue.ts'
import { mayTake } from '../limits/shares.ts'
import type { Tenant } from '../limits/tenants.ts'
import type { Read } from './read.ts'

/** Most reads in flight of callers whose app is unknown. A flood of unknown tokens leaves the others to known apps. */
const UNKNOWN_READS = 4
/** Time in PostgreSQL after which a read is slow, in ms. */
const SLOW_MS = 250

export interface ReadQueueOptions {
  /** Number of sessions. */
  sessions: number
  /** Average number of reads in flight on a session. */
  readsPerSession: number
  /** True if a read counts as much as the time that it takes, false if all reads count alike. */
  countsTime: boolean
  /** Time after which a block of a response that has begun goes before all other reads, in ms. */
  continuedFirstMs: number
}

/** Reads that wait or are in flight. It chooses the next one by what each tenant has used and has in flight. */
export class ReadQueue {
  readonly #options: ReadQueueOptions
  readonly #waiting = new FairQueue<Read>()
  readonly #inFlight = new Bag<Read>()

  constructor(options: ReadQueueOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.length
  }

  add(read: Read): void {
    this.#waiting.add(read)
  }

  /** Takes the next read, if a tenant of those that wait may have one more in flight. */
  take(): Read | undefined {
    const overdueAt = performance.now() - this.#options.continuedFirstMs
    // A proxy closes a response without progress, so an export must not wait long between two blocks.
    const isFirst = ({ isContinued, askedAt }: Read) => isContinued && askedAt <= overdueAt
    return this.#waiting.take(this.#mayHaveMore, isFirst)
  }

  /** Removes waiting reads. */
  takeIf(holds: (read: Read) => boolean): Read[] {
    return this.#waiting.takeIf(holds)
  }

  /** Gives back the turn of a read that was taken, but may not run. */
  refused({ tenant }: Read): void {
    this.#waiting.use(tenant, -1)
  }

  started(read: Read): void {
    this.#inFlight.add(read)
  }

  /** @param ms time for which PostgreSQL worked on the read */
  ended(read: Read, ms: number): void {
    if (!this.#inFlight.delete(read)) return
    // It has counted as 1 when it was taken.
    if (this.#options.countsTime && ms > 1) this.#waiting.use(read.tenant, ms - 1)
  }

  readonly #mayHaveMore = (tenant: Tenant): boolean => {
    const { sessions, readsPerSession } = this.#options
    const free = Math.ceil(readsPerSession * sessions) - this.#inFlight.size
    if (free <= 0) return false
    if (tenant.appId === undefined) return this.#unknown() < mostUnknown(sessions)
    const slowAt = performance.now() - SLOW_MS
    let own = 0
    let slow = 0
    for (const read of this.#inFlight) {
      if (read.tenant !== tenant) continue
      own += 1
      if (read.sentAt < slowAt) slow += 1
    }
    // Slow reads of one app leave half of the sessions to the others.
    return slow <= sessions / 2 && mayTake(1, own, free)
  }

  /** Number of reads in flight of callers whose app is unknown. */
  #unknown(): number {
    let unknown = 0
    for (const { reader, tenant } of this.#inFlight)
      if (reader !== undefined && tenant.appId === undefined) unknown += 1
    return unknown
  }
}

/** At least one session is left to known apps, if there are several. */
const mostUnknown = (sessions: number) => Math.max(1, Math.min(UNKNOWN_READS, sessions - 1))
