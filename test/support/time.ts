import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import type { Test } from 'tap'

/**
 * Divides the pauses of node:timers/promises in this process until the end of the test. Waits of PostgreSQL, such as
 * lock_timeout, keep their length.
 */
export function shortenPauses(t: Test, divisor: number): void {
  const { setTimeout } = timers
  const shorter = <T>(ms = 0, value?: T, options?: Parameters<typeof setTimeout>[2]) =>
    setTimeout(ms / divisor, value, options)
  const apply = (pause: typeof setTimeout) => {
    timers.setTimeout = pause
    syncBuiltinESMExports()
  }
  apply(shorter as typeof setTimeout)
  t.teardown(() => apply(setTimeout))
}
