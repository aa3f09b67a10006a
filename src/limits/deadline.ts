/** Waits for a promise, at most `ms`. @param late returns the result, or throws, after that time */
export async function withDeadline<T>(promise: Promise<T>, ms: number, late: () => T): Promise<T> {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  return await Promise.race([promise, over.then(late)]).finally(() => clearTimeout(timer))
}
