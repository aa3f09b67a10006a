import { setTimeout as sleep } from 'node:timers/promises'

/** Returns the value of a promise. Throws a sentence after a time in ms that only a hang exceeds. */
export async function within<T>(what: string, promise: Promise<T>, ms = 60_000): Promise<T> {
  const timer = new AbortController()
  const limit = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`not within ${ms} ms: ${what}`)
  })
  return await Promise.race([promise, limit]).finally(() => timer.abort())
}
