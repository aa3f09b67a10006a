const waiting: (() => void)[] = []

/**
 * Resolves in a turn of the event loop in which nobody else's does, in the order of asking. Work that is
 * done in such turns, a part in each, leaves room between them for whatever is short.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next)
  })
}

function next(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}
