import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Waits for a condition.
 * @param what the condition, for the error message
 * @throws Error after `ms`
 */
export async function until(what: string, holds: () => Promise<boolean> | boolean, ms = 60_000) {
  const deadline = performance.now() + ms
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${ms} ms: ${what}`)
    await sleep(20)
  }
}
