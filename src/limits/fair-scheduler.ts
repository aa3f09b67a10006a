/** Chunks of large responses per turn of the event loop. */
const CHUNKS_PER_TURN = 3
/**
 * Pause between turns while a small request arrived in the last RECENT_MS, in ms. Without it, large
 * responses keep all processors busy, and small requests wait. It costs large responses a fifth of
 * their rate, and cuts a third of the latency of small ones (docs/experiments.md).
 */
const PAUSE_MS = 1
const RECENT_MS = 50

export class FairScheduler {
  /** Start of the last small request. Large responses then pause for RECENT_MS. */
  smallRequestAt = Number.NEGATIVE_INFINITY
  readonly #waiting: (() => void)[] = []

  nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#waiting.push(resolve) === 1) this.#schedule()
    })
  }

  readonly #run = (): void => {
    for (const resolve of this.#waiting.splice(0, CHUNKS_PER_TURN)) resolve()
    if (this.#waiting.length > 0) this.#schedule()
  }

  #schedule(): void {
    if (performance.now() - this.smallRequestAt < RECENT_MS) setTimeout(this.#run, PAUSE_MS)
    else setImmediate(this.#run)
  }
}
