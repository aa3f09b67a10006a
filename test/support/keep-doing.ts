import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { within } from './within.ts'

/**
 * Repeats work until the returned function or the end of the test stops it.
 * @param work receives the number of the turn, from 0
 */
export function keepDoing(
  t: Test,
  pauseMs: number,
  work: (turn: number) => Promise<void>,
): () => Promise<void> {
  let stopped = false
  const repeat = async () => {
    for (let turn = 0; !stopped; turn += 1) {
      await work(turn)
      await sleep(pauseMs)
    }
  }
  const repeating = repeat()
  const stop = () => {
    stopped = true
    return within('the repeated work has stopped', repeating)
  }
  t.teardown(stop)
  return stop
}
