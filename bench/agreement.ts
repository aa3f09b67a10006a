import type { Load } from './loads.ts'
import type { Ask, Target } from './targets.ts'

/**
 * Holds that all targets give the same rows and totals: who answers wrongly cannot win. Some of a
 * load's requests stand for all.
 * @throws Error that names the target and what it was asked
 */
export async function compareAnswers(targets: Target[], loads: Load[]): Promise<void> {
  for (const ask of loads.flatMap(({ asks = [] }) => asks.slice(0, 3))) {
    const [first, ...others] = targets
    if (first === undefined) return
    const truth = await answerOf(first, ask)
    for (const target of others) {
      const answer = await answerOf(target, ask)
      if (answer !== truth) {
        throw new Error(`${target.name} and ${first.name} differ on ${JSON.stringify(ask)}`)
      }
    }
  }
}

async function answerOf(target: Target, ask: Ask): Promise<string> {
  const url = `http://127.0.0.1:${target.server.port}${target.page(ask)}`
  const response = await fetch(url, { headers: target.headers(ask.connection) })
  const { ids, total } = await target.readPage(response)
  // Not all can be told to put nulls last, which moves rows within a day.
  return JSON.stringify([total, ids.length, ids.sort()])
}
