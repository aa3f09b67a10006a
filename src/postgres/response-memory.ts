import { FairScheduler } from './fair-scheduler.ts'

// In bytes. Smaller buffers are cheap to allocate, larger ones are rare.
const SMALLEST_POOLED = 65_536
const LARGEST_POOLED = 4_194_304
/** Idle bytes that a burst leaves: the pages of some twenty requests. */
const MOST_IDLE = 33_554_432

/**
 * Large buffers for reuse. Fresh memory for each response, and its garbage collection, took more than
 * half of the time of a full page (docs/performance.md). The last buffer returned is the first one
 * taken: it is the likeliest to be in the processor's cache.
 */
class BufferPool {
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. Only these are taken back, and only once. */
  readonly #lent = new WeakSet<ArrayBufferLike>()

  /** Returns a buffer of at least `size` bytes. Its content is arbitrary. */
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

  /** Takes a buffer back. The caller must not use any part of it again. */
  giveBack(buffer: Buffer): void {
    if (!this.#lent.delete(buffer.buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }
}

/** Memory of responses in flight: rows read from the database and JSON not yet sent, in bytes. */
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
   * @param rows that the response may have
   * @param since start of the request, on performance.now()'s clock
   */
  reserve(rows: number, since: number): MemoryReservation {
    const reservation = new MemoryReservation(this, rows, since)
    if (!reservation.large) this.scheduler.noteSmallRequest()
    return reservation
  }
}

/** More rows than the default page make a request large. */
const SMALL_ROWS = 1_000
/** A row as PostgreSQL sends it, rounded up, in bytes. */
const USUAL_ROW = 512

/** The memory of one request, from its first row until the response is sent or the client is gone. */
export class MemoryReservation {
  /** True for a request that must leave room for smaller ones. */
  readonly large: boolean
  /** Start of the request, on performance.now()'s clock: its reads share one time limit. */
  readonly since: number
  /** True when nobody waits for the response any more. */
  ended = false
  /** True when the socket gets the response itself, without a compressing stream between. */
  direct = false
  readonly #memory: ResponseMemory
  readonly #rows: number
  #bytes = 0
  #setAside = 0
  #json: Buffer | undefined

  constructor(memory: ResponseMemory, rows: number, since = performance.now()) {
    this.since = since
    this.#memory = memory
    this.#rows = rows
    this.large = rows > SMALL_ROWS
  }

  /**
   * Checks for room before a read: rejecting mid-read wastes the read. A large request sets aside what
   * it will take.
   * @returns false where there is no room
   */
  setAside(): boolean {
    if (!this.large) return this.#memory.used < this.#room
    const expected = Math.min(this.#rows * USUAL_ROW, this.#room / 4)
    const missing = Math.max(0, expected - this.#bytes - this.#setAside)
    if (this.#memory.used + missing > this.#room) return false
    this.#memory.used += missing
    this.#setAside += missing
    return true
  }

  /** Releases what was set aside and not taken. */
  releaseSetAside(): void {
    this.#memory.used -= this.#setAside
    this.#setAside = 0
  }

  /** Takes memory for rows. @returns undefined, and takes nothing, above the limit */
  take(bytes: number): Buffer | undefined {
    const more = Math.max(0, bytes - this.#setAside)
    if (this.ended || this.#memory.used + more > this.#room) return undefined
    const fromSetAside = Math.min(bytes, this.#setAside)
    this.#setAside -= fromSetAside
    this.#memory.used -= fromSetAside
    const block = this.#memory.buffers.take(bytes)
    this.#count(block.length)
    return block
  }

  /** Returns a block of rows for reuse. */
  giveBack(block: Buffer): void {
    this.release(block.length)
    this.#memory.buffers.giveBack(block)
  }

  /** Takes memory for JSON. There is room for it, as there was for its rows. */
  takeForJson(bytes: number): Buffer {
    const block = this.#memory.buffers.take(bytes)
    this.#count(block.length)
    this.#json = block
    return block
  }

  /** Counts a response that was written elsewhere, in place of the block taken for it. */
  replaceJson(bytes: number): void {
    if (this.#json) this.giveBack(this.#json)
    this.#json = undefined
    this.#count(bytes)
  }

  /** Uncounts bytes that nobody needs any more, without reuse. */
  release(bytes: number): void {
    const released = Math.min(bytes, this.#bytes)
    this.#memory.used -= released
    this.#bytes -= released
  }

  /** Resolves when this response may write its next chunk. */
  nextTurn(): Promise<void> {
    return this.#memory.scheduler.nextTurn()
  }

  /**
   * Releases all memory, for good.
   * @param sent true when the whole response has left the process: then its memory is reused, and a
   *   writer must stop at `ended`
   */
  end(sent: boolean): void {
    this.ended = true
    this.releaseSetAside()
    this.release(this.#bytes)
    if (sent && this.#json) this.#memory.buffers.giveBack(this.#json)
    this.#json = undefined
  }

  /** Large requests leave the last quarter to small ones. */
  get #room(): number {
    const { limit } = this.#memory
    return this.large ? 0.75 * limit : limit
  }

  #count(bytes: number): void {
    if (this.ended) return
    this.#memory.used += bytes
    this.#bytes += bytes
  }
}
