/**
 * Large buffers that are used again. Every answer has its rows and its JSON in some of them: fresh memory
 * for each, and the collector's work to find out that nobody needs it any more, took more than half of
 * the time of a full page (docs/performance.md). The one that was used last comes first, as it is the
 * likeliest to be in the processor's cache still.
 */
export class Blocks {
  /** Those that nobody has, the one that came back last at the end. */
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Those that somebody has, so that none comes back that is not ours, or twice. */
  readonly #lent = new WeakSet<ArrayBufferLike>()

  /** A buffer of at least so many bytes, with whatever is in it. */
  take(size: number): Buffer {
    if (size < SMALLEST || size > LARGEST) return Buffer.allocUnsafe(size)
    const whole = 2 ** Math.ceil(Math.log2(size))
    const index = this.#idle.findLastIndex(({ length }) => length === whole)
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (idle) this.#idleBytes -= whole
    const block = idle ?? Buffer.allocUnsafeSlow(whole)
    this.#lent.add(block.buffer)
    return block
  }

  /**
   * Takes a buffer back that take() gave. Only for the last one who has it, or a part of it: the next one
   * who takes it writes over it.
   */
  giveBack(block: Buffer): void {
    if (!this.#lent.delete(block.buffer)) return
    this.#idle.push(block)
    this.#idleBytes += block.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }
}

// In bytes. What is smaller costs little; what is larger is rare.
const SMALLEST = 65_536
const LARGEST = 4_194_304
/** What a burst leaves behind: the pages of some twenty requests. */
const MOST_IDLE = 33_554_432
