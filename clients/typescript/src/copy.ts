import { CopyError, CursorExpiredError } from './errors.ts'

export type ListName = 'portfolio_transactions' | 'account_transactions'

/**
 * Copy of a list. `current` is complete, and the app reads it. `next` is built beside it, and replaces it
 * when it is complete.
 */
export type CopyName = 'current' | 'next'

/** One page of changes. */
export interface CopyChanges {
  list: ListName
  copy: CopyName
  /** Cursor of the copy before these changes; null if the copy does not exist yet. */
  since: string | null
  /** Cursor of the copy after these changes. */
  cursor: string
  /** New and changed rows, each in its latest state. */
  upserts: { id: string; row: object }[]
  /** Identifiers of rows that no longer exist. */
  removed: string[]
}

/** Database that keeps a copy of the transactions of one connection. */
export interface CopyStore {
  /** Returns the cursor of a copy, or null if the copy does not exist. */
  cursor(list: ListName, copy: CopyName): string | null | Promise<string | null>
  /**
   * Writes rows, removals and the cursor in one transaction.
   * @throws CopyError `conflict` if the cursor of the copy is not `since`: another process has written
   */
  apply(changes: CopyChanges): void | Promise<void>
  /** Counts the rows of a copy. */
  count(list: ListName, copy: CopyName): number | Promise<number>
  /**
   * Replaces the current copy by the next one, in one transaction.
   * @throws CopyError `conflict` if the cursor of the next copy is not `cursor`
   */
  swap(list: ListName, cursor: string): void | Promise<void>
  /** Deletes the next copy, if there is one. */
  discard(list: ListName): void | Promise<void>
}

/** Result of syncTransactions() for a list. */
export interface CopyResult {
  /** Rows of the copy, and of the list. */
  totalItems: number
  /** True if the copy is new: the first one, or one that replaced a copy with unknown changes. */
  rebuilt: boolean
}

export interface Page<Row> {
  items: Row[]
  limit: number
  totalItems: number
}

export interface ChangesPage<Row> extends Page<Row> {
  removed: string[]
  nextCursor: string
  hasMore: boolean
}

/** New copies that a call begins before it fails. */
const MAX_BUILDS = 3

/** Brings the copy of a list up to date. Builds a second one if it cannot be continued. */
export async function syncCopy<Row extends object>(
  store: CopyStore,
  list: ListName,
  idOf: (row: Row) => string,
  pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
): Promise<CopyResult> {
  const isBuilding = (await store.cursor(list, 'next')) !== null
  const isComplete = (await store.cursor(list, 'current')) !== null
  let copy: CopyName = isComplete && !isBuilding ? 'current' : 'next'
  for (let builds = 0; ; builds += 1) {
    const { error, cursor, totalItems } = await advance(store, list, copy, idOf, pagesSince)
    if (error === undefined) {
      if (copy === 'next') await store.swap(list, cursor)
      return { totalItems, rebuilt: copy === 'next' }
    }
    if (builds === MAX_BUILDS) throw error
    await store.discard(list)
    copy = 'next'
  }
}

/** Stores all pages. Returns an error if the copy cannot be continued. */
async function advance<Row extends object>(
  store: CopyStore,
  list: ListName,
  copy: CopyName,
  idOf: (row: Row) => string,
  pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
): Promise<{ error?: Error; cursor: string; totalItems: number }> {
  let since = await store.cursor(list, copy)
  let totalItems = 0
  try {
    for await (const page of pagesSince(since)) {
      const { nextCursor: cursor, removed } = page
      const upserts = page.items.map((row) => ({ id: idOf(row), row }))
      await store.apply({ list, copy, since, cursor, upserts, removed })
      since = cursor
      totalItems = page.totalItems
    }
  } catch (error) {
    if (error instanceof CursorExpiredError) return { error, cursor: '', totalItems }
    throw error
  }
  const cursor = since ?? ''
  const count = await store.count(list, copy)
  if (count === totalItems) return { cursor, totalItems }
  const message = `The copy has ${count} rows, and the list ${totalItems}`
  return { error: new CopyError('count_differs', message), cursor, totalItems }
}
