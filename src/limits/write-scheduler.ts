import { FairQueue } from './fair-queue.ts'
import type { Tenant } from './tenants.ts'

/** Bytes of rows that count as one use: their JSON fills a chunk. */
const CHUNK_ROW_BYTES = 131_072

interface Waiting {
  tenant: Tenant
  isContinued: false
  begin(): void
}

/**
 * Spreads the writing of responses over iterations of the event loop: while several wait, one chunk or one small response in
 * each. A tenant that has written less goes first, so neither large responses nor many small ones slow those of the others.
 */
export class WriteScheduler {
  readonly #waiting = new FairQueue<Waiting>()

  /** Waits until a chunk may be written, in a later iteration of the event loop. */
  next(tenant: Tenant): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.add({ tenant, isContinued: false, begin })
      if (this.#waiting.length === 1) setImmediate(this.#begin)
    })
  }

  /**
   * Waits until a small response may be written. It costs as much as a chunk besides its bytes.
   * @returns undefined if no response waits: it is written at once
   */
  nextSmall(tenant: Tenant, bytes: number): Promise<void> | undefined {
    const use = 1 + bytes / CHUNK_ROW_BYTES
    if (this.#waiting.length === 0) {
      this.#waiting.pass(tenant, use)
      return undefined
    }
    return this.next(tenant).then(() => this.#waiting.use(tenant, use - 1))
  }

  readonly #begin = (): void => {
    this.#waiting.take(() => true)?.begin()
    if (this.#waiting.length > 0) setImmediate(this.#begin)
  }
}
