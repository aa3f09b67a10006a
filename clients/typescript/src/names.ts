import type { AssetsTransferOrder } from './rows.ts'

/** Names of investments by identifier. */
export type InvestmentNames = Readonly<Record<string, string>>

/** What an investment is called. */
interface Naming {
  name: string | null
  isin: string | null
}

/**
 * Returns what investments are called.
 * @param names names that the app knows. They come before those of transfer orders.
 */
export function namingOf(
  orders: Iterable<AssetsTransferOrder>,
  names: InvestmentNames = {},
): (investment: string | null) => Naming {
  const namesOfOrders = new Map<string, Set<string>>()
  const isins = new Map<string, Set<string>>()
  for (const { investment, name, isin } of orders) {
    if (investment === null) continue
    addTo(namesOfOrders, investment, name)
    addTo(isins, investment, isin)
  }
  return (investment) => {
    if (investment === null) return { name: null, isin: null }
    const given = Object.hasOwn(names, investment) ? names[investment] : undefined
    const name = given ?? onlyOne(namesOfOrders.get(investment))
    return { name, isin: onlyOne(isins.get(investment)) }
  }
}

function addTo(texts: Map<string, Set<string>>, investment: string, text: string | null): void {
  if (text === null) return
  const known = texts.get(investment)
  if (known === undefined) texts.set(investment, new Set([text]))
  else known.add(text)
}

/** Returns the text on which all orders agree; null if there is none, or if they differ. */
function onlyOne(texts: Set<string> = new Set()): string | null {
  const [first = null, ...others] = texts
  return others.length === 0 ? first : null
}
