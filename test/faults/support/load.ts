import type { Test } from 'tap'

/** What became of the requests of a load. */
export interface Outcome {
  sent: number
  /** What was wrong with those that were not answered with the truth. */
  faults: string[]
  slowestMs: number
}

/**
 * Some clients, each of which asks again as soon as it has its answer.
 * @param ask asks once, and tells what is wrong with the answer
 * @returns ends the load, as the end of the test does, and tells what came of it
 */
export function keepAsking(
  t: Test,
  clients: number,
  ask: (client: number) => Promise<string | undefined>,
): () => Promise<Outcome> {
  const outcome: Outcome = { sent: 0, faults: [], slowestMs: 0 }
  let ended = false
  const client = async (number: number) => {
    while (!ended) {
      const start = performance.now()
      const fault = await ask(number).catch((error: Error) => `${error} ${error.cause ?? ''}`)
      outcome.sent += 1
      outcome.slowestMs = Math.max(outcome.slowestMs, performance.now() - start)
      if (fault !== undefined) outcome.faults.push(fault)
    }
  }
  const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  const end = async () => {
    ended = true
    await all
    return outcome
  }
  t.teardown(end)
  return end
}

/** Holds that every request of a load was answered with the truth, and notes how it went. */
export function allAnswered(t: Test, { sent, faults, slowestMs }: Outcome): void {
  const slowest = `slowest ${Math.round(slowestMs)} ms`
  process.stderr.write(`${t.name}: ${sent} sent, ${faults.length} wrong or lost, ${slowest}\n`)
  t.ok(sent > 0)
  t.same(faults.slice(0, 3), [], `${faults.length} of ${sent} requests`)
}
