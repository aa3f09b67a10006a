import { type Entrant, mayTake, Tenant } from './concurrency.ts'
import { FairScheduler } from './fair-scheduler.ts'

// In bytes. Smaller buffers are cheap to allocate. Larger ones are rare.
const SMALLEST_POOLED = 65_536
const LARGEST_POOLED = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/**
 * Large buffers for reuse. Allocation and garbage collection of new memory took more than half of the
 * time of a full page (docs/performance.md). The pool is a stack: the last returned buffer is probably
 * still in the processor's cache.
 */
class BufferPool {
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. The pool accepts only these, and each only once. */
  readonly #lent = new WeakSet<ArrayBufferLike>()

  /** Returns a buffer of at least `size` bytes with arbitrary content. */
  take(size: number): Buffer {
    if (size < SMALLEST_POOLED || size > LARGEST_POOLED) return Buffer.allocUnsafe(size)
    const rounded = 2 ** Math.ceil(Math.log2(size))
    const index = this.#idle.findLastIndex(({ length }) => length === rounded)
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (idle) this.#idleBytes -= rounded
    const buffer = idle ?? Buffer.allocUnsafeSlow(rounded)
    this.#lent.add(buffer.buffer)
    return buffer
  }

  /** Returns a buffer to the pool. The caller must not use any part of it again. */
  giveBack(buffer: Buffer): void {
    if (!this.#lent.delete(buffer.buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }
}

/** Memory of responses in flight, in bytes: rows from the database, and JSON that is not sent yet. */
export class ResponseMemory {
  readonly limit: number
  readonly buffers = new BufferPool()
  readonly scheduler = new FairScheduler()
  used = 0

  constructor(limit: number) {
    this.limit = limit
  }

  /**
   * Reserves memory for a response. The caller must end the reservation.
   * @param rows maximum number of rows in the response
   * @param since start of the request, on performance.now()'s clock
   * @param tenant app of the request
   */
  reserve(rows: number, since: number, tenant = new Tenant('')): MemoryReservation {
    const reservation = new MemoryReservation(this, rows, since, tenant)
    if (!reservation.large) this.scheduler.noteSmallRequest()
    return reservation
  }
}

/** Requests for more rows are large. It is the default `limit`. */
const SMALL_ROWS = 1_000
/** Size of a row as PostgreSQL sends it, rounded up, in bytes. */
const USUAL_ROW = 512

/** Memory of one request, until the response is sent or the client has disconnected. */
export class MemoryReservation implements Entrant {
  /** True for a large request, which must leave room for small ones. */
  readonly large: boolean
  /**
   * Start of the request, on performance.now()'s clock. All its reads share one deadline. An export has
   * one for each block of rows.
   */
  since: number
  readonly tenant: Tenant
  /** True if no client waits for the response any more. */
  ended = false
  /** True if the rows did not fit in the memory, and fewer rows may fit. */
  tooLarge = false
  /** True if the response is sent uncompressed, without a stream that keeps chunks. */
  direct = false
  readonly #memory: ResponseMemory
  readonly #rows: number
  #bytes = 0
  #setAside = 0
  #json: Buffer | undefined

  constructor(memory: ResponseMemory, rows: number, since: number, tenant: Tenant) {
    this.since = since
    this.tenant = tenant
    this.#memory = memory
    this.#rows = rows
    this.large = rows > SMALL_ROWS
  }

  /**
   * Checks for room before a read, because rejecting mid-read wastes the read. A large request sets
   * aside the expected size of its rows.
   * @returns false if there is no room
   */
  setAside(): boolean {
    if (!this.large) return this.#fits(1)
    const expected = Math.min(this.#rows * USUAL_ROW, this.#room / 4)
    const missing = Math.max(0, expected - this.#bytes - this.#setAside)
    if (!this.#fits(missing)) return false
    this.#use(missing)
    this.#setAside += missing
    return true
  }

  /** Releases the memory that was set aside and not taken. */
  releaseSetAside(): void {
    this.#use(-this.#setAside)
    this.#setAside = 0
  }

  /** Takes memory for rows. @returns undefined above the limits, and then takes nothing */
  take(bytes: number): Buffer | undefined {
    const more = Math.max(0, bytes - this.#setAside)
    if (this.ended || !this.#fits(more)) {
      const everFits = mayTake(bytes, this.#bytes, this.#room - this.#bytes)
      const isLong = this.#bytes + bytes > this.#rows * USUAL_ROW
      this.tooLarge = this.#rows > 1 && (isLong || !everFits)
      return undefined
    }
    const fromSetAside = Math.min(bytes, this.#setAside)
    this.#setAside -= fromSetAside
    this.#use(-fromSetAside)
    const block = this.#memory.buffers.take(bytes)
    this.#count(block.length)
    return block
  }

  /** Returns a block of rows for reuse. */
  giveBack(block: Buffer): void {
    this.release(block.length)
    this.#memory.buffers.giveBack(block)
  }

  /** Takes memory for JSON without a check: rejecting the response now would waste the read. */
  takeForJson(bytes: number): Buffer {
    const block = this.#memory.buffers.take(bytes)
    this.#count(block.length)
    this.#json = block
    return block
  }

  /** Replaces the JSON block by a response of this size that is stored elsewhere. */
  replaceJson(bytes: number): void {
    if (this.#json) this.giveBack(this.#json)
    this.#json = undefined
    this.#count(bytes)
  }

  /** Subtracts bytes that are not in use any more, without reusing them. */
  release(bytes: number): void {
    const released = Math.min(bytes, this.#bytes)
    this.#use(-released)
    this.#bytes -= released
  }

  /** Resolves when this response may write its next chunk. */
  nextTurn(): Promise<void> {
    return this.#memory.scheduler.nextTurn()
  }

  /**
   * Releases all memory permanently.
   * @param sent true if the whole response has left the process. Its memory is then reused, so a writer
   *   must stop at `ended`.
   */
  end(sent: boolean): void {
    this.ended = true
    this.releaseSetAside()
    this.release(this.#bytes)
    if (sent && this.#json) this.#memory.buffers.giveBack(this.#json)
    this.#json = undefined
  }

  /** Reserves the last quarter of the memory for small requests. */
  get #room(): number {
    const { limit } = this.#memory
    return this.large ? 0.75 * limit : limit
  }

  #count(bytes: number): void {
    if (this.ended) return
    this.#use(bytes)
    this.#bytes += bytes
  }

  /** True if the app may take more memory: what the others need stays free. */
  #fits(more: number): boolean {
    return mayTake(more, this.tenant.bytes, this.#room - this.#memory.used)
  }

  #use(bytes: number): void {
    this.#memory.used += bytes
    this.tenant.bytes += bytes
  }
}
