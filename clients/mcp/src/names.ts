import type { InvestmentNames, SqliteStore } from '../../typescript/src/index.ts'
import { description } from './texts.ts'

/**
 * Returns the name of each investment that transfer orders name, and agree about.
 * @param given names that the app knows. They come before those of transfer orders.
 */
export function namesOf(copy: SqliteStore, given: InvestmentNames): Map<string, string> {
  const names = new Map<string, Set<string>>()
  for (const { investment, name } of copy.transferOrders()) {
    if (investment === null || name === null) continue
    const found = names.get(investment) ?? new Set()
    names.set(investment, found.add(name))
  }
  const agreed = new Map<string, string>()
  for (const [investment, found] of names) {
    const [name = '', ...others] = found
    if (others.length === 0) agreed.set(investment, name)
  }
  for (const [investment, name] of Object.entries(given)) agreed.set(investment, name)
  return agreed
}

/** Returns the cell of a name: empty if it is unknown, undefined without an investment. */
export function nameOf(names: Map<string, string>, investment: string | null): string | undefined {
  return investment === null ? undefined : description(names.get(investment) ?? null)
}
