/**
 * Large buffers that are used again. Every answer has its rows and its JSON in some of them: fresh memory
 * for each, and the collector's work to find out that nobody needs it any more, took more than half of
 * the time of a full page (docs/performance.md). The one that was used last comes first, as it is the
 * likeliest to be in the processor's cache still.
 */
export class Blocks {
  /** Those that nobody has, by their size. */
  readonly #idle = new Map<number, Buffer[]>()
  #idleBytes = 0
  /** Those that somebody has, so that none comes back that is not ours, or twice. */
  readonly #lent = new WeakSet<ArrayBufferLike>()

  /** A buffer of at least so many bytes, with whatever is in it. */
  take(size: number): Buffer {
    if (size < SMALLEST || size > LARGEST) return Buffer.allocUnsafe(size)
    const whole = 2 ** Math.ceil(Math.log2(size))
    const idle = this.#idle.get(whole)?.pop()
    if (idle) this.#idleBytes -= whole
    const block = idle ?? Buffer.allocUnsafeSlow(whole)
    this.#lent.add(block.buffer)
    return block
  }

  /**
   * Takes a buffer back, or the buffer that this is a part of. Only for the last one who has it: the next
   * one who takes it writes over it.
   */
  giveBack({ buffer }: Buffer): void {
    if (!this.#lent.delete(buffer) || this.#idleBytes + buffer.byteLength > MOST_IDLE) return
    const size = buffer.byteLength
    const idle = this.#idle.get(size)
    if (idle) idle.push(Buffer.from(buffer))
    else this.#idle.set(size, [Buffer.from(buffer)])
    this.#idleBytes += size
  }
}

// In bytes. What is smaller costs little; what is larger is rare.
const SMALLEST = 65_536
const LARGEST = 4_194_304
/** What a burst leaves behind: the pages of some twenty requests. */
const MOST_IDLE = 33_554_432
