/**
 * Large buffers that are used again. Every answer has its rows and its JSON in some of them: fresh memory
 * for each, and the collector's work to find out that nobody needs it any more, took more than half of
 * the time of a full page (docs/performance.md). The one that was used last comes first, as it is the
 * likeliest to be in the processor's cache still.
 */
class Blocks {
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

/** Bytes of answers under way in this process: read from the database and not yet sent. */
export class AnswerMemory {
  readonly limit: number
  readonly blocks = new Blocks()
  used = 0

  constructor(limit: number) {
    this.limit = limit
  }
}

/**
 * What one request takes of that memory, from its first row until its response is over. Whoever opens it
 * gives it back, whatever way the request ends: a slow reader holds its bytes for as long as it reads.
 */
export class Holding {
  /** Whether the request asks for so much that it has to leave room for those who ask for less. */
  readonly heavy: boolean
  /** When the request began, on performance.now()'s clock: it may have to read more than once. */
  readonly since: number
  /** Whether nobody waits for the answer any more. */
  over = false
  /** Whether the answer goes to the socket as it is, without a stream between that compresses it. */
  direct = false
  readonly #memory: AnswerMemory
  readonly #rows: number
  #bytes = 0
  #reserved = 0
  #json: Buffer | undefined

  /** @param rows that the answer may have */
  constructor(memory: AnswerMemory, rows: number, since = performance.now()) {
    this.since = since
    this.#memory = memory
    this.#rows = rows
    this.heavy = rows > LIGHT_ROWS
  }

  /**
   * Makes sure that there is room before anything is read. A heavy request sets aside what it will take:
   * one that is refused only when half of its rows are there has cost nearly as much as an answer.
   * @returns false where there is none
   */
  reserve(): boolean {
    if (!this.heavy) return this.#memory.used < this.#room
    const expected = Math.min(this.#rows * USUAL_ROW, this.#room / 4)
    const wanted = Math.max(0, expected - this.#bytes - this.#reserved)
    if (this.#memory.used + wanted > this.#room) return false
    this.#memory.used += wanted
    this.#reserved += wanted
    return true
  }

  /** Leaves to others what was set aside and not taken. */
  unreserve(): void {
    this.#memory.used -= this.#reserved
    this.#reserved = 0
  }

  /** Memory for rows. @returns undefined, and takes nothing, where that would be more than there is */
  take(bytes: number): Buffer | undefined {
    const more = Math.max(0, bytes - this.#reserved)
    if (this.over || this.#memory.used + more > this.#room) return undefined
    const reserved = Math.min(bytes, this.#reserved)
    this.#reserved -= reserved
    this.#memory.used -= reserved
    const block = this.#memory.blocks.take(bytes)
    this.#count(block.length)
    return block
  }

  /** Takes back a block of rows that nobody will look at again. */
  giveBack(block: Buffer): void {
    this.release(block.length)
    this.#memory.blocks.giveBack(block)
  }

  /** Memory to write an answer in. There is room for it, as there was for its rows. */
  takeForJson(bytes: number): Buffer {
    const block = this.#memory.blocks.take(bytes)
    this.#count(block.length)
    this.#json = block
    return block
  }

  /** Holds an answer that was written elsewhere, instead of the block that was taken for it. */
  replaceJson(bytes: number): void {
    if (this.#json) this.giveBack(this.#json)
    this.#json = undefined
    this.#count(bytes)
  }

  /** Forgets that so many bytes were taken; who has them does not need them any more. */
  release(bytes: number): void {
    const released = Math.min(bytes, this.#bytes)
    this.#memory.used -= released
    this.#bytes -= released
  }

  /**
   * Gives all of it back, for good.
   * @param sent whether all of the answer has left the process. Then its memory is used again: whoever
   *   still writes it has to stop, which `over` tells
   */
  end(sent: boolean): void {
    this.over = true
    this.unreserve()
    this.release(this.#bytes)
    if (sent && this.#json) this.#memory.blocks.giveBack(this.#json)
    this.#json = undefined
  }

  /** Heavy requests leave the last quarter to the others, however many of them were let in before. */
  get #room(): number {
    const { limit } = this.#memory
    return this.heavy ? 0.75 * limit : limit
  }

  #count(bytes: number): void {
    if (this.over) return
    this.#memory.used += bytes
    this.#bytes += bytes
  }
}

/** More rows than this, the default page, make a request a heavy one. */
const LIGHT_ROWS = 1_000
/** What a row takes as PostgreSQL sends it, in bytes, and a little more. */
const USUAL_ROW = 512
