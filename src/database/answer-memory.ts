import { Blocks } from './blocks.ts'

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
  /** Whether nobody waits for the answer any more. */
  over = false
  readonly #memory: AnswerMemory
  #bytes = 0
  #json: Buffer | undefined

  constructor(memory: AnswerMemory, heavy: boolean) {
    this.#memory = memory
    this.heavy = heavy
  }

  /** Whether there is room to begin with. */
  get welcome(): boolean {
    return this.#memory.used < this.#room
  }

  /** Memory for rows. @returns undefined, and takes nothing, where that would be more than there is */
  take(bytes: number): Buffer | undefined {
    if (this.over || this.#memory.used + bytes > this.#room) return undefined
    this.#memory.used += bytes
    this.#bytes += bytes
    return this.#memory.blocks.take(bytes)
  }

  /** Takes back a block of rows that nobody will look at again. */
  giveBack(block: Buffer): void {
    this.release(block.length)
    this.#memory.blocks.giveBack(block)
  }

  /** Memory for an answer that is made at once. There is room for it, as there was for its rows. */
  takeForJson(bytes: number): Buffer {
    this.#json = this.#memory.blocks.take(bytes)
    return this.#json
  }

  /** Holds so many bytes instead of those taken, which are there already. */
  settle(bytes: number): void {
    this.release(this.#bytes)
    if (this.over) return
    this.#memory.used += bytes
    this.#bytes = bytes
  }

  release(bytes: number): void {
    const released = Math.min(bytes, this.#bytes)
    this.#memory.used -= released
    this.#bytes -= released
  }

  /** Heavy requests leave the last quarter to the others, however many of them were let in before. */
  get #room(): number {
    const { limit } = this.#memory
    return this.heavy ? 0.75 * limit : limit
  }

  /**
   * Gives all of it back, for good.
   * @param sent whether all of the answer has left the process, so that nobody looks at it any more
   */
  end(sent: boolean): void {
    this.over = true
    this.release(this.#bytes)
    if (sent && this.#json) this.#memory.blocks.giveBack(this.#json)
    this.#json = undefined
  }
}
