import { mayTake, type Tenant } from './requests.ts'

// In bytes. Smaller buffers are cheap to allocate. Larger ones are rare.
const SMALLEST_POOLED = 65_536
const LARGEST_POOLED = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/**
 * Large buffers for reuse. Allocation and garbage collection of new memory took more than half of the time of a full
 * page (docs/experiments.md). The pool is a stack: the last returned buffer is probably still in the processor's cache.
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
  used = 0

  constructor(limit: number) {
    this.limit = limit
  }
}

/** Requests for more rows are large. It is the default `limit`. */
export const SMALL_ROWS = 1_000
/** Requests that may skip more rows are large: within one day, each skipped row is read. */
const SMALL_SKIPPED = 10_000
/** Size of a row as PostgreSQL sends it, rounded up, in bytes. */
const USUAL_ROW = 512
/** Part of the memory that large requests may use. The rest is for small ones. */
const LARGE_PART = 0.75

interface Owner {
  tenant: Tenant
  ended: boolean
}

/** Memory of one request, until the response is sent or the client has disconnected. */
export class MemoryReservation {
  large = false
  /** Set when the rows did not fit in the memory: `never` if they exceed it, `now` if fewer rows may fit. */
  tooLarge: 'never' | 'now' | undefined
  readonly #memory: ResponseMemory
  readonly #owner: Owner
  #rows = 0
  #room: number
  #bytes = 0
  #setAside = 0
  #json: Buffer | undefined

  constructor(memory: ResponseMemory, owner: Owner) {
    this.#memory = memory
    this.#owner = owner
    this.#room = memory.limit
  }

  get ended(): boolean {
    return this.#owner.ended
  }

  /** @param skipped rows that PostgreSQL may have to skip before these */
  expect(rows: number, skipped = 0): void {
    this.#rows = Number.isFinite(rows) ? rows : 0
    this.large = rows > SMALL_ROWS || skipped > SMALL_SKIPPED
    this.#room = this.large ? LARGE_PART * this.#memory.limit : this.#memory.limit
  }

  /**
   * Checks for room before a read, because rejecting mid-read wastes the read. A large request sets
   * aside the expected size of its rows.
   * @returns false if there is no room
   */
  setAside(): boolean {
    if (!this.large) return this.#fits(1)
    const expected = Math.min(this.#rows * USUAL_ROW, this.#room / 4)
    const missing = Math.max(0, expected - this.#bytes)
    if (!this.#fits(missing)) return false
    this.#add(missing)
    this.#setAside += missing
    return true
  }

  /** Releases the memory that was set aside and not taken. */
  releaseSetAside(): void {
    this.#add(-this.#setAside)
    this.#setAside = 0
  }

  /** Takes memory for rows. @returns undefined above the limits, and then takes nothing */
  take(bytes: number): Buffer | undefined {
    const fromSetAside = Math.min(bytes, this.#setAside)
    if (this.#owner.ended || !this.#fits(bytes - fromSetAside)) {
      const taken = this.#bytes - this.#setAside
      const everFits = mayTake(bytes, taken, this.#room - taken)
      const isLong = taken + bytes > this.#rows * USUAL_ROW
      const fewerMayFit = this.#rows > 1 && isLong
      this.tooLarge = everFits ? (fewerMayFit ? 'now' : undefined) : 'never'
      return undefined
    }
    this.#setAside -= fromSetAside
    const block = this.#memory.buffers.take(bytes)
    this.#add(block.length - fromSetAside)
    return block
  }

  giveBack(block: Buffer): void {
    this.release(block.length)
    this.#memory.buffers.giveBack(block)
  }

  /** Takes memory for JSON without a check: rejecting the response now would waste the read. */
  takeForJson(bytes: number): Buffer {
    const block = this.#memory.buffers.take(bytes)
    if (!this.#owner.ended) this.#add(block.length)
    this.#json = block
    return block
  }

  /** Replaces the JSON block by a response of this size that is stored elsewhere. */
  replaceJson(bytes: number): void {
    if (this.#json) this.giveBack(this.#json)
    this.#json = undefined
    if (!this.#owner.ended) this.#add(bytes)
  }

  /** Subtracts bytes that are not in use any more, without reusing them. */
  release(bytes: number): void {
    this.#add(-Math.min(bytes, this.#bytes - this.#setAside))
  }

  /**
   * Releases all memory permanently. The request has ended before.
   * @param sent true if the whole response has left the process. Its memory is then reused, so a writer
   *   must stop when the request has ended.
   */
  end(sent: boolean): void {
    this.#add(-this.#bytes)
    this.#setAside = 0
    if (sent && this.#json) this.#memory.buffers.giveBack(this.#json)
    this.#json = undefined
  }

  /** True if the app may take more memory: what the others need stays free. */
  #fits(more: number): boolean {
    return mayTake(more, this.#owner.tenant.bytes, this.#room - this.#memory.used)
  }

  #add(bytes: number): void {
    this.#bytes += bytes
    this.#memory.used += bytes
    this.#owner.tenant.bytes += bytes
  }
}
