const waiting: (() => void)[] = []

/**
 * Parts of long work that are done in one turn of the event loop. One would leave more room to what is
 * short, and take a fifth off what is long (docs/performance.md).
 */
const A_TURN = 2

/**
 * Resolves in a turn of the event loop in which few others do, in the order of asking. Work that is done
 * in such turns, a part in each, leaves room between them for whatever is short.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(next)
  })
}

function next(): void {
  for (const resolve of waiting.splice(0, A_TURN)) resolve()
  if (waiting.length > 0) setImmediate(next)
}
