import { addressOf, type PageQuery, type Target } from '../servers/targets.ts'
import type { Load } from './loads.ts'

/**
 * Checks that every target returns the same rows and totals, with three requests of each load. A wrong
 * response must not win.
 * @throws Error that names the target and the query
 */
export async function compareResponses(targets: Target[], loads: Load[]): Promise<void> {
  const [first, ...others] = targets
  if (first === undefined) return
  for (const query of loads.flatMap(({ queries = [] }) => queries.slice(0, 3))) {
    const expected = await resultOf(first, query)
    for (const target of others) {
      if ((await resultOf(target, query)) !== expected) {
        throw new Error(`${target.name} and ${first.name} differ on ${JSON.stringify(query)}`)
      }
    }
  }
}

async function resultOf(target: Target, query: PageQuery): Promise<string> {
  const headers = target.headers(query.connection)
  const response = await fetch(addressOf(target, target.page(query)), { headers })
  const { ids, total } = await target.readPage(response)
  // Sorted: Platformatic DB cannot put nulls last, so rows within a day have another order.
  return JSON.stringify([total, ids.length, ids.sort()])
}
