import { Unavailable } from './errors.ts'

const MAX_ITEMS = 100

interface Waiting<Item, Result> extends PromiseWithResolvers<Result> {
  item: Item
}

/** Runs waiting items in batches, one at a time. Groups take turns, so a large group does not delay the others. */
export class FairBatches<Item, Result> {
  readonly #run: (items: Item[]) => Promise<Result>
  readonly #groups = new Map<unknown, Map<string, Waiting<Item, Result>>>()
  #running = false

  constructor(run: (items: Item[]) => Promise<Result>) {
    this.#run = run
  }

  /** Adds an item. Equal keys of a group that wait share one item. @returns the result of its batch */
  add(group: unknown, key: string, item: Item): Promise<Result> {
    const items = this.#groups.get(group) ?? new Map<string, Waiting<Item, Result>>()
    this.#groups.set(group, items)
    const waiting = items.get(key) ?? { item, ...Promise.withResolvers<Result>() }
    items.set(key, waiting)
    if (!this.#running) void this.#runAll()
    return waiting.promise
  }

  async #runAll(): Promise<void> {
    this.#running = true
    while (this.#groups.size > 0) {
      const batch = this.#take(MAX_ITEMS)
      try {
        const result = await this.#run(batch.map(({ item }) => item))
        for (const { resolve } of batch) resolve(result)
      } catch (error) {
        // The rest would wait for another timeout.
        const failed = error instanceof Unavailable ? this.#take(Number.POSITIVE_INFINITY) : []
        for (const { reject } of [...batch, ...failed]) reject(error)
      }
    }
    this.#running = false
  }

  #take(count: number): Waiting<Item, Result>[] {
    const taken: Waiting<Item, Result>[] = []
    // A group that is set again comes last.
    for (const [group, items] of this.#groups) {
      const [first] = items
      this.#groups.delete(group)
      if (first === undefined) continue
      taken.push(first[1])
      items.delete(first[0])
      if (items.size > 0) this.#groups.set(group, items)
      if (taken.length === count) break
    }
    return taken
  }
}
