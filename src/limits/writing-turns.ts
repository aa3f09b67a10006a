import { FairQueue } from './fair-queue.ts'
import type { Tenant } from './tenants.ts'

/** Pause before a chunk, within RECENT_MS of a small response, in ms. Without it, small responses take twice as long. */
const PAUSE_MS = 1
const RECENT_MS = 50

interface Waiting {
  tenant: Tenant
  isContinued: false
  begin(): void
}

/**
 * Iterations of the event loop in which large responses write their chunks: one chunk in each, so that small responses need not
 * wait for many chunks, and a tenant with many large responses does not slow those of the others.
 */
export class WritingTurns {
  readonly #waiting = new FairQueue<Waiting>()
  /** Time of the last small response, on performance.now()'s clock. */
  #smallAt = Number.NEGATIVE_INFINITY

  /** Resolves when the tenant has its next turn. */
  next(tenant: Tenant): Promise<void> {
    return new Promise((begin) => {
      this.#waiting.add({ tenant, isContinued: false, begin })
      if (this.#waiting.length === 1) this.#schedule()
    })
  }

  /** Records that a small response was written at once. */
  recordSmall(): void {
    this.#smallAt = performance.now()
  }

  #schedule(): void {
    if (performance.now() - this.#smallAt < RECENT_MS) setTimeout(this.#begin, PAUSE_MS)
    else setImmediate(this.#begin)
  }

  readonly #begin = (): void => {
    this.#waiting.take(() => true)?.begin()
    if (this.#waiting.length > 0) this.#schedule()
  }
}
