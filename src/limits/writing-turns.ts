import { FairQueue } from './fair-queue.ts'
import type { Tenant } from './tenants.ts'

/** Bytes of rows that count as one turn: their JSON fills a chunk. */
const TURN_BYTES = 131_072

interface Waiting {
  tenant: Tenant
  isContinued: false
  begin(): void
}

/**
 * Iterations of the event loop in which responses are written: while several wait, one chunk or one small response in each. A
 * tenant that has written less goes first, so neither large responses nor many small ones slow those of the others.
 */
export class WritingTurns {
  readonly #waiting = new FairQueue<Waiting>()

  /** Waits for the turn of a chunk, in a later iteration of the event loop. */
  next(tenant: Tenant): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.add({ tenant, isContinued: false, begin })
      if (this.#waiting.length === 1) setImmediate(this.#begin)
    })
  }

  /**
   * Waits for the turn of a small response. It costs as much as a chunk besides its bytes.
   * @returns undefined if no response waits: it is written at once
   */
  nextSmall(tenant: Tenant, bytes: number): Promise<void> | undefined {
    const turns = 1 + bytes / TURN_BYTES
    if (this.#waiting.length === 0) {
      this.#waiting.pass(tenant, turns)
      return undefined
    }
    return this.next(tenant).then(() => this.#waiting.use(tenant, turns - 1))
  }

  readonly #begin = (): void => {
    this.#waiting.take(() => true)?.begin()
    if (this.#waiting.length > 0) setImmediate(this.#begin)
  }
}
