import type { CopyCounts, ListName, RowChanges } from './copy.ts'

/** JSON of a row before and after a change; null if the row did not or does not exist. */
export interface Change {
  id: string
  before: string | null
  after: string | null
}

export function countsOf(changes: Change[]): CopyCounts {
  const counts = { inserted: 0, updated: 0, removed: 0 }
  for (const { before, after } of changes) {
    if (before === null) counts.inserted += 1
    else if (after === null) counts.removed += 1
    else counts.updated += 1
  }
  return counts
}

export function addCounts(counts: CopyCounts, added: CopyCounts): void {
  counts.inserted += added.inserted
  counts.updated += added.updated
  counts.removed += added.removed
}

/** Returns the changes as an app gets them. */
export function rowChangesOf(list: ListName, changes: Change[]): RowChanges {
  const upserts: unknown[] = []
  const removed: string[] = []
  const previous = new Map<string, unknown>()
  for (const { id, before, after } of changes) {
    if (before !== null) previous.set(id, JSON.parse(before))
    if (after === null) removed.push(id)
    else upserts.push(JSON.parse(after))
  }
  return { list, upserts, removed, previous } as RowChanges
}

/** Adds the store of the transaction. It is not enumerable, so that an app may copy and send changes as before. */
export function withStore<Store>(changes: RowChanges, store: Store): RowChanges & { store: Store } {
  return Object.defineProperty(changes, 'store', { value: store }) as RowChanges & { store: Store }
}

/** Returns the last state of each row of a page; null for a removed row. */
export function latestOf(
  upserts: { id: string; row: object }[],
  removed: string[],
): Map<string, string | null> {
  const latest = new Map<string, string | null>()
  for (const { id, row } of upserts) latest.set(id, JSON.stringify(row))
  for (const id of removed) latest.set(id, null)
  return latest
}
