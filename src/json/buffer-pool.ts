// In bytes. Smaller buffers are cheap to allocate. Larger ones are rare.
const SMALLEST = 65_536
const LARGEST = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/**
 * Large buffers for reuse. Allocation and garbage collection of new memory took more than half of the time of a full
 * page (docs/experiments.md). The pool is a stack: the last returned buffer is probably still in the processor's cache.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. The pool accepts only these, and each only once. */
  readonly #lent = new WeakSet<Buffer>()

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

  /** Returns a buffer to the pool. The caller must not use any part of it again. */
  giveBack(buffer: Buffer): void {
    if (!this.#lent.delete(buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }
}
