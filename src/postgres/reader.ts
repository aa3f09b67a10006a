import type { MemoryAccount } from '../limits/memory-account.ts'
import type { PageSizes } from '../limits/page-sizes.ts'
import type { Tenant } from '../limits/tenants.ts'
import { FactRecorder, type RequestFacts } from '../request-facts.ts'
import { DEFAULT_LIMIT } from '../schemas/list.ts'
import type { RawRows } from './wire/query.ts'

/** A read that has ended. Metrics and traces record it. */
export interface ReadEvent {
  facts: RequestFacts
  statement: string
  /** Including the wait for a connection. */
  durationMs: number
  error: unknown
}

export interface ReaderOptions {
  /** Whose limits the reads use. */
  owner: { readonly tenant: Tenant }
  /** Account of the rows. It is closed when the client is gone. */
  memory: MemoryAccount
  sizes: PageSizes
  recorder: FactRecorder
  onReadEnd: (read: ReadEvent) => void
}

/** Requests for more bytes are large, and those for more rows than the default `limit`. */
const SMALL_BYTES = 1_048_576
/** A page that may skip more rows is deep. PostgreSQL reads each row that it skips within a month. */
const SMALL_SKIPPED = 10_000
/** Rows from which on a response shows how long the rows of an app are. */
const MEASURED_ROWS = 100
/** Limit in ms: slower deep pages of an app are large. Reads on the same session wait as long behind a deep page. */
const SLOW_MS = 100

/** The reads of one request: they share a tenant, a memory account, a deadline and a class. */
export class Reader {
  readonly #options: ReaderOptions
  #startedAt: number
  #hasBegun = false
  #isLarge = false
  #isDeep = false
  #expectedBytes = 1

  constructor(options: ReaderOptions) {
    this.#options = options
    this.#startedAt = options.recorder.facts.receivedAt
  }

  get tenant(): Tenant {
    return this.#options.owner.tenant
  }

  get memory(): MemoryAccount {
    return this.#options.memory
  }

  get recorder(): FactRecorder {
    return this.#options.recorder
  }

  /** Start of the time that all reads share. */
  get startedAt(): number {
    return this.#startedAt
  }

  /** True if the reads have few connections, so that small ones do not wait behind them. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** True if PostgreSQL may have to skip many rows. */
  get isDeep(): boolean {
    return this.#isDeep
  }

  /** Memory that the rows need at least, in bytes. */
  get expectedBytes(): number {
    return this.#expectedBytes
  }

  /** @param skipped rows that PostgreSQL may have to skip before these */
  expectRows(rows: number, skipped = 0): void {
    const { memory, tenant } = this
    const { sizes } = this.#options
    const bytes = rows * sizes.rowBytesOf(tenant)
    this.#isDeep = skipped > SMALL_SKIPPED
    const isSlow = this.#isDeep && sizes.deepMsOf(tenant) > SLOW_MS
    this.#isLarge = rows > DEFAULT_LIMIT || bytes > SMALL_BYTES || isSlow
    // Most small responses have few rows. The number of transfer orders is unknown.
    if (this.#isLarge && rows < Number.POSITIVE_INFINITY)
      this.#expectedBytes = Math.min(bytes, memory.limit / 4)
  }

  /** Records how long a read took in PostgreSQL, and its rows, for the class of the next reads of the app. */
  measure(ms: number, rows: Pick<RawRows, 'count' | 'byteLength'> | undefined): void {
    const { tenant } = this
    const { sizes } = this.#options
    if (tenant.appId === undefined) return
    if (this.#isDeep) sizes.measureDeepPage(tenant, ms)
    if (rows !== undefined && rows.count >= MEASURED_ROWS)
      sizes.measureRows(tenant, rows.byteLength / rows.count)
  }

  /** True if the response has begun. A read that fails from now on cuts it. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** Begins the read of a further block of rows, which has the whole time again. */
  continue(): void {
    this.#hasBegun = true
    this.#startedAt = performance.now()
  }

  /** Makes a reader whose reads go on after the client has disconnected. They are in the same trace. */
  detached(): Reader {
    const { tenant } = this
    const { memory, sizes, recorder, onReadEnd } = this.#options
    const owner = { tenant }
    const { span } = recorder.facts
    const own = new FactRecorder()
    if (span) own.trace(span)
    return new Reader({ owner, memory: memory.another(owner), sizes, recorder: own, onReadEnd })
  }

  /** Records the end of a read. @param sentAt 0 if it was never sent */
  endRead(statement: string, askedAt: number, sentAt: number, error: unknown): void {
    const { recorder, onReadEnd } = this.#options
    const endedAt = performance.now()
    const waitedUntil = sentAt === 0 ? endedAt : sentAt
    recorder.endRead(waitedUntil - askedAt, endedAt - waitedUntil)
    onReadEnd({ facts: recorder.facts, statement, durationMs: endedAt - askedAt, error })
  }
}
