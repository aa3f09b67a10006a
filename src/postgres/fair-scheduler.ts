/** Chunks of large responses in one turn of the event loop. */
const CHUNKS_PER_TURN = 3
/**
 * A pause between turns, in ms, while a small request arrived in the last RECENT_MS. Without it, large
 * responses keep every processor busy, those of PostgreSQL too, and small requests wait. It costs large
 * responses a fifth of their rate and takes a third off the latency of others (docs/performance.md).
 */
const PAUSE_MS = 1
const RECENT_MS = 50

/** Schedules chunks of large responses, three per turn of the event loop, first come first served. */
export class FairScheduler {
  readonly #waiting: (() => void)[] = []
  #smallRequestAt = Number.NEGATIVE_INFINITY

  /** Resolves when the caller may write its next chunk. */
  nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) this.#schedule()
    })
  }

  /** Makes large responses pause for the next RECENT_MS. */
  noteSmallRequest(): void {
    this.#smallRequestAt = performance.now()
  }

  readonly #run = (): void => {
    for (const resolve of this.#waiting.splice(0, CHUNKS_PER_TURN)) resolve()
    if (this.#waiting.length > 0) this.#schedule()
  }

  #schedule(): void {
    if (performance.now() - this.#smallRequestAt < RECENT_MS) setTimeout(this.#run, PAUSE_MS)
    else setImmediate(this.#run)
  }
}
