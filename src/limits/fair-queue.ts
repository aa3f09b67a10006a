import type { Tenant } from './tenants.ts'

/** Items that wait, in the order of their arrival for each tenant. Tenants take turns. */
export class FairQueue<Item extends { tenant: Tenant }> {
  length = 0
  /** The tenant that is next in turn is first. */
  readonly #waiting = new Map<Tenant, Item[]>()

  add(item: Item): void {
    const items = this.#waiting.get(item.tenant)
    if (items) items.push(item)
    else this.#waiting.set(item.tenant, [item])
    this.length += 1
  }

  /** Takes the next item of the tenants that may have one more. */
  take(mayHaveMore: (tenant: Tenant) => boolean): Item | undefined {
    for (const [tenant, items] of this.#waiting) {
      if (!mayHaveMore(tenant)) continue
      const item = items.shift()
      this.#waiting.delete(tenant)
      if (items.length > 0) this.#waiting.set(tenant, items)
      this.length -= 1
      return item
    }
    return undefined
  }

  /** Takes all items for which this holds. */
  takeIf(holds: (item: Item) => boolean): Item[] {
    const all = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    this.length = 0
    return all.filter((item) => {
      if (holds(item)) return true
      this.add(item)
      return false
    })
  }
}
