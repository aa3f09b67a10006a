import { setTimeout as sleep } from 'node:timers/promises'

const FIRST_PAUSE_MS = 10
/** A condition may send a request or a statement, and other files run at the same time. */
const LONGEST_PAUSE_MS = 100

/**
 * Waits for a condition, which should stay once it holds: the pauses between two checks grow.
 * @param what the condition, for the error message
 * @throws Error after `ms`
 */
export async function until(what: string, holds: () => Promise<boolean> | boolean, ms = 60_000) {
  const deadline = performance.now() + ms
  let pauseMs = FIRST_PAUSE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`)
    await sleep(pauseMs)
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)
  }
}
