import { DEFAULT_LIMIT } from '../schemas/list.ts'
import { mayTake, type Tenant } from './tenants.ts'

// In bytes. Smaller buffers are cheap to allocate. Larger ones are rare.
const SMALLEST = 65_536
const LARGEST = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/**
 * Memory of responses in flight, in bytes: rows from the database, and JSON that is not sent yet. It uses large
 * buffers again: new memory took more than half of the time of a full page (docs/experiments.md). The idle buffers
 * are a stack: the last returned one is probably still in the processor's cache.
 */
export class ResponseMemory {
  readonly limit: number
  used = 0
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. Only these become idle, and each only once. */
  readonly #lent = new WeakSet<Buffer>()

  constructor(limit: number) {
    this.limit = limit
  }

  /** Returns a buffer of at least `size` bytes with arbitrary content. */
  take(size: number): Buffer {
    if (size < SMALLEST || size > LARGEST) return Buffer.allocUnsafe(size)
    const rounded = 2 ** Math.ceil(Math.log2(size))
    const index = this.#idle.findLastIndex(({ length }) => length === rounded)
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (idle) this.#idleBytes -= rounded
    const buffer = idle ?? Buffer.allocUnsafeSlow(rounded)
    this.#lent.add(buffer)
    return buffer
  }

  /** Takes a buffer back. The caller must not use any part of it again. */
  giveBack(buffer: Buffer): void {
    if (!this.#lent.delete(buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }
}

/**
 * Requests for more bytes, or for more rows than the default `limit`, are large. The length of the rows of an app is
 * unknown before its first page, so that one counts as small.
 */
const SMALL_BYTES = 1_048_576
/** A page that may skip more rows is deep. PostgreSQL reads each row that it skips within a month. */
const SMALL_SKIPPED = 10_000
/** Limit in ms: slower deep pages of an app are large. Reads on the same session wait as long behind a deep page. */
const SLOW_MS = 100

interface Owner {
  tenant: Tenant
  ended: boolean
}

/** Memory of one request, until the response is sent or the client has disconnected. */
export class MemoryReservation {
  large = false
  deep = false
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
    const { rowBytes, deepMs } = this.#owner.tenant
    const bytes = rows * rowBytes
    this.deep = skipped > SMALL_SKIPPED
    this.large = rows > DEFAULT_LIMIT || bytes > SMALL_BYTES || (this.deep && deepMs > SLOW_MS)
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
    const block = this.#memory.take(bytes)
    this.count(block.length)
    return block
  }

  /** Takes memory for JSON without a check: rejecting the response now would waste the read. */
  takeForJson(bytes: number): Buffer {
    const block = this.#memory.take(bytes)
    this.count(block.length)
    this.#json = block
    return block
  }

  /** Gives back rows that are written. */
  giveBack(block: Buffer): void {
    this.count(-block.length)
    this.#memory.giveBack(block)
  }

  /** Counts bytes that are stored elsewhere. A negative number releases memory without reusing it. */
  count(bytes: number): void {
    if (this.#owner.ended) return
    this.#bytes += bytes
    this.#memory.used += bytes
    this.#owner.tenant.bytes += bytes
  }

  /**
   * Releases all memory. The request ends then, and nothing more is counted.
   * @param sent true if the whole response has left the process. Its memory is then reused, so a writer
   *   must stop when the request has ended.
   */
  end(sent: boolean): void {
    this.count(-this.#bytes)
    if (sent && this.#json) this.#memory.giveBack(this.#json)
    this.#json = undefined
  }

  /** True if the app may take more memory: what the others need stays free. */
  #fits(more: number): boolean {
    return mayTake(more, this.#owner.tenant.bytes, this.#memory.limit - this.#memory.used)
  }
}
