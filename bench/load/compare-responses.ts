import { addressOf, type PageQuery, type Target } from '../servers/targets.ts'
import type { Load } from './loads.ts'

/**
 * Checks that every target returns the same rows and totals, with three requests of each load. A wrong
 * response must not win. Servers with the statements of the service must send its bytes, too.
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
    await compareBytes(targets, (target) => target.page(query), query.connection)
  }
  for (const connection of [1, 2, 3])
    await compareBytes(targets, (target) => target.orders(connection), connection)
}

/** Compares status and body of the first target with those that must be the same. */
async function compareBytes(
  [first, ...others]: Target[],
  pathOf: (target: Target) => string,
  connection: number,
): Promise<void> {
  if (first === undefined) return
  const bytesOf = async (target: Target) => {
    const headers = target.headers(connection)
    const response = await fetch(addressOf(target, pathOf(target)), { headers })
    return `${response.status} ${await response.text()}`
  }
  const expected = await bytesOf(first)
  for (const target of others.filter(({ hasSameBytes }) => hasSameBytes)) {
    if ((await bytesOf(target)) !== expected)
      throw new Error(`${target.name} sends other bytes than ${first.name}: ${pathOf(target)}`)
  }
}

async function resultOf(target: Target, query: PageQuery): Promise<string> {
  const headers = target.headers(query.connection)
  const response = await fetch(addressOf(target, target.page(query)), { headers })
  const { ids, total } = await target.readPage(response)
  // Sorted: Platformatic DB cannot put nulls last, so rows within a day have another order.
  return JSON.stringify([total, ids.length, ids.sort()])
}
