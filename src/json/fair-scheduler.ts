const waiting: (() => void)[] = []
let shortAt = Number.NEGATIVE_INFINITY

/** Parts of long work that are done in one turn of the event loop. */
const A_TURN = 3
/**
 * Long work pauses between its turns, for so many ms, while there was short work in the last LATELY ms:
 * else it keeps all processors busy, those of PostgreSQL, too, and whatever is short waits for one. It
 * takes a fifth of what long work gets done, and a third off what others wait (docs/performance.md).
 */
const PAUSE = 1
const LATELY = 50

/**
 * Resolves in a turn of the event loop in which few others do, in the order of asking. Work that is done
 * in such turns, a part in each, leaves room between them for whatever is short.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) later()
  })
}

/** Says that there is something short to do, beside which long work is to take its time. */
export function shortWork(): void {
  shortAt = performance.now()
}

function next(): void {
  for (const resolve of waiting.splice(0, A_TURN)) resolve()
  if (waiting.length > 0) later()
}

function later(): void {
  if (performance.now() - shortAt < LATELY) setTimeout(next, PAUSE)
  else setImmediate(next)
}
