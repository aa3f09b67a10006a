import type { Tenant } from './tenants.ts'

export interface QueuedItem {
  readonly tenant: Tenant
  /** True if it goes before all others of its tenant, because a response that has begun waits for it. */
  readonly isContinued: boolean
}

interface Line<Item> {
  items: Item[]
  /** What the tenant has used of the resource, or the use at which it began to wait, if that is more. */
  used: number
}

/**
 * Items that wait for a resource. Next is the tenant that has used least of it, so a tenant that has used much waits
 * until the waiting ones have used as much (start-time fair queueing: Goyal, Vin and Cheng, 1996). A tenant saves up
 * nothing while it does not wait.
 */
export class FairQueue<Item extends QueuedItem> {
  #length = 0
  readonly #lines = new Map<Tenant, Line<Item>>()
  readonly #used = new WeakMap<Tenant, number>()
  /** Virtual time: use of the tenant that was served last, before this item. */
  #virtualTime = 0

  get length(): number {
    return this.#length
  }

  add(item: Item): void {
    const { tenant, isContinued } = item
    let line = this.#lines.get(tenant)
    if (line === undefined) {
      const used = Math.max(this.#used.get(tenant) ?? 0, this.#virtualTime)
      line = { items: [], used }
      this.#lines.set(tenant, line)
    }
    if (isContinued) {
      const index = line.items.findIndex((other) => !other.isContinued)
      line.items.splice(index < 0 ? line.items.length : index, 0, item)
    } else line.items.push(item)
    this.#length += 1
  }

  /**
   * Takes the next item of the tenants that may have one more. An item counts as the use of 1.
   * @param isFirst true for an item that goes before those of all tenants
   */
  take(
    mayHaveMore: (tenant: Tenant) => boolean,
    isFirst: (item: Item) => boolean = () => false,
  ): Item | undefined {
    let next: Line<Item> | undefined
    for (const [tenant, line] of this.#lines) {
      const goesFirst = isFirst(line.items[0] as Item)
      if (next !== undefined && line.used >= next.used && !goesFirst) continue
      if (!mayHaveMore(tenant)) continue
      next = line
      if (goesFirst) break
    }
    if (next === undefined) return undefined
    const item = next.items.shift() as Item
    const { tenant } = item
    this.#virtualTime = Math.max(this.#virtualTime, next.used)
    next.used += 1
    this.#used.set(tenant, next.used)
    if (next.items.length === 0) this.#lines.delete(tenant)
    this.#length -= 1
    return item
  }

  /** Counts what a tenant uses without an item, because no other one waits. */
  pass(tenant: Tenant, use: number): void {
    this.#virtualTime = Math.max(this.#used.get(tenant) ?? 0, this.#virtualTime)
    this.#used.set(tenant, this.#virtualTime + use)
  }

  /** Counts what an item has used beyond 1: -1 if it was taken and not used. */
  use(tenant: Tenant, more: number): void {
    this.#used.set(tenant, (this.#used.get(tenant) ?? 0) + more)
    const line = this.#lines.get(tenant)
    if (line) line.used += more
  }

  /** Removes the items of which this is true. The others keep their order. */
  takeIf(holds: (item: Item) => boolean): Item[] {
    const taken: Item[] = []
    for (const [tenant, line] of this.#lines) {
      const kept: Item[] = []
      for (const item of line.items) {
        if (holds(item)) taken.push(item)
        else kept.push(item)
      }
      line.items = kept
      if (kept.length === 0) this.#lines.delete(tenant)
    }
    this.#length -= taken.length
    return taken
  }
}
