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

/** Requests for more rows, or for more bytes, are large. 1,000 is the default `limit`. */
export const SMALL_ROWS = 1_000
const SMALL_BYTES = 1_048_576
/** Requests that may skip more rows are large: within one day, each skipped row is read. */
const SMALL_SKIPPED = 10_000

interface Owner {
  tenant: Tenant
  ended: boolean
}

/** Memory of one request, until the response is sent or the client has disconnected. */
export class MemoryReservation {
  large = false
  /** True if the rows did not fit, and would not fit if no other request used memory. */
  tooLarge = false
  readonly #memory: ResponseMemory
  readonly #owner: Owner
  #expected = 1
  #bytes = 0
  #json: Buffer | undefined

  constructor(memory: ResponseMemory, owner: Owner) {
    this.#memory = memory
    this.#owner = owner
  }

  /** @param skipped rows that PostgreSQL may have to skip before these */
  expect(rows: number, skipped = 0): void {
    const bytes = rows * this.#owner.tenant.rowBytes
    this.large = rows > SMALL_ROWS || bytes > SMALL_BYTES || skipped > SMALL_SKIPPED
    // Most small responses have few rows. The number of transfer orders is unknown.
    if (this.large && rows < Number.POSITIVE_INFINITY)
      this.#expected = Math.min(bytes, this.#memory.limit / 4)
  }

  /** False if the expected rows do not fit. A rejection after the read would waste it. */
  hasRoom(): boolean {
    return this.#fits(this.#expected)
  }

  /** Takes memory for rows. @returns undefined above the limits, and then takes nothing */
  take(bytes: number): Buffer | undefined {
    if (this.#owner.ended || !this.#fits(bytes)) {
      this.tooLarge = !mayTake(bytes, this.#bytes, this.#memory.limit - this.#bytes)
      return undefined
    }
    const block = this.#memory.buffers.take(bytes)
    this.#add(block.length)
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
    this.#add(-Math.min(bytes, this.#bytes))
  }

  /**
   * Releases all memory permanently. The request has ended before.
   * @param sent true if the whole response has left the process. Its memory is then reused, so a writer
   *   must stop when the request has ended.
   */
  end(sent: boolean): void {
    this.#add(-this.#bytes)
    if (sent && this.#json) this.#memory.buffers.giveBack(this.#json)
    this.#json = undefined
  }

  /** True if the app may take more memory: what the others need stays free. */
  #fits(more: number): boolean {
    return mayTake(more, this.#owner.tenant.bytes, this.#memory.limit - this.#memory.used)
  }

  #add(bytes: number): void {
    this.#bytes += bytes
    this.#memory.used += bytes
    this.#owner.tenant.bytes += bytes
  }
}
