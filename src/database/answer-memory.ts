/** Bytes of answers under way in this process: read from the database and not yet sent. */
export interface AnswerMemory {
  readonly limit: number
  used: number
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

  constructor(memory: AnswerMemory, heavy: boolean) {
    this.#memory = memory
    this.heavy = heavy
  }

  /** Whether there is room to begin with. */
  get welcome(): boolean {
    return this.#memory.used < this.#room
  }

  /** @returns false, and takes nothing, where that would be more than there is */
  take(bytes: number): boolean {
    if (this.over || this.#memory.used + bytes > this.#room) return false
    this.#memory.used += bytes
    this.#bytes += bytes
    return true
  }

  /** Holds so many bytes instead of those taken, which are there already. */
  settle(bytes: number): void {
    this.giveBack(this.#bytes)
    if (this.over) return
    this.#memory.used += bytes
    this.#bytes = bytes
  }

  giveBack(bytes: number): void {
    const given = Math.min(bytes, this.#bytes)
    this.#memory.used -= given
    this.#bytes -= given
  }

  /** Heavy requests leave the last quarter to the others, however many of them were let in before. */
  get #room(): number {
    const { limit } = this.#memory
    return this.heavy ? 0.75 * limit : limit
  }

  /** Gives all of it back, for good. */
  end(): void {
    this.over = true
    this.giveBack(this.#bytes)
  }
}
