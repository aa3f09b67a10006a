import { Shares } from './shares.ts'

// In bytes. A daily sync has buffers of 4 KiB. New ones led to a full garbage collection each second.
const SMALLEST = 4_096
const LARGEST = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/** Memory of responses in flight, in bytes. It reuses buffers: new ones took half of the time of a full page. */
export class ResponseMemory {
  readonly limit: number
  /** Bytes of the responses of each tenant. Their accounts count them (memory-account.ts). */
  readonly shares = new Shares()
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. Only these become idle, and each only once. */
  readonly #lent = new WeakSet<Buffer>()

  constructor(limit: number) {
    this.limit = limit
  }

  /** Bytes of all responses. */
  get used(): number {
    return this.shares.used
  }

  /** Returns a buffer of at least `size` bytes with arbitrary content. */
  lend(size: number): Buffer {
    const isReusable = size >= SMALLEST && size <= LARGEST
    if (!isReusable) return Buffer.allocUnsafe(size)
    const rounded = 2 ** Math.ceil(Math.log2(size))
    const buffer = this.#takeIdle(rounded) ?? Buffer.allocUnsafeSlow(rounded)
    this.#lent.add(buffer)
    return buffer
  }

  /** Keeps a buffer for reuse, if lend() made it for that. */
  takeBack(buffer: Buffer): void {
    if (!this.#lent.delete(buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }

  #takeIdle(size: number): Buffer | undefined {
    const index = this.#idle.findLastIndex(({ length }) => length === size)
    if (index < 0) return undefined
    const [buffer] = this.#idle.splice(index, 1)
    this.#idleBytes -= size
    return buffer
  }
}
