/**
 * Counts, over the last second, the statements that the database answered and those that it did not.
 * Requests that were sent away before it was asked are in neither: a service that sheds load is ready.
 */
export interface Tally {
  answered(): void
  failed(): void
  /** Whether it answered any in the last so many ms. */
  answeredWithin(ms: number): boolean
  /** Whether it answers next to nothing: five or more went without, and not one in ten was answered. */
  failing(): boolean
}

const HALF_MS = 500

export function createTally(): Tally {
  let since = performance.now()
  let answeredAt = Number.NEGATIVE_INFINITY
  let now = { answered: 0, failed: 0 }
  let before = { answered: 0, failed: 0 }

  const turn = () => {
    const age = performance.now() - since
    if (age < HALF_MS) return
    before = age < 2 * HALF_MS ? now : { answered: 0, failed: 0 }
    now = { answered: 0, failed: 0 }
    since += age
  }
  return {
    answered: () => {
      turn()
      now.answered += 1
      answeredAt = performance.now()
    },
    failed: () => {
      turn()
      now.failed += 1
    },
    answeredWithin: (ms) => performance.now() - answeredAt < ms,
    failing: () => {
      turn()
      const failed = now.failed + before.failed
      return failed >= 5 && failed > 9 * (now.answered + before.answered)
    },
  }
}
