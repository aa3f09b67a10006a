/**
 * Waits for a promise, but no longer than `ms`.
 * @param late makes the result, or throws, where the time is over
 */
export async function withDeadline<T>(promise: Promise<T>, ms: number, late: () => T): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return await Promise.race([promise, over.then(late)]).finally(() => clearTimeout(timer))
}
