import { CopyError, isLostCursor } from './errors.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './rows.ts'

/** Rows of each list. */
export interface ListRows {
  portfolio_transactions: PortfolioTransaction
  account_transactions: AccountTransaction
  transfer_orders: AssetsTransferOrder
}

export type ListName = keyof ListRows

/**
 * Copy of a list. `current` is complete, and the app reads it. `next` is built beside it, and replaces it
 * when it is complete.
 */
export type CopyName = 'current' | 'next'

/** State of the service that a complete copy has. */
export interface CopyState {
  /** `Data-Version`: it changes with each change of any list of the connection. */
  version: string | null
  totalItems: number
  /** Time at which the service last read the institution. */
  refreshedAt: Date | null
}

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
  /** State of the copy after the last page; null after the others. */
  state: CopyState | null
}

/** What changed in the copy that the app reads. Rows that stay the same are left out. */
export type RowChanges = {
  [List in ListName]: {
    list: List
    /** New and changed rows. */
    upserts: ListRows[List][]
    /** Identifiers of removed rows. */
    removed: string[]
    /** Changed and removed rows by identifier, as they were. A new row has none. */
    previous: Map<string, ListRows[List]>
  }
}[ListName]

/**
 * Called inside the transaction that writes the changes: an error undoes them. With a PostgresStore, it may be
 * asynchronous, and gets the client of the transaction. With a SqliteStore, it must not be asynchronous.
 */
export type OnChanges<Client = void> = (changes: RowChanges, client: Client) => void | Promise<void>

export interface CopyCounts {
  inserted: number
  updated: number
  removed: number
}

type Maybe<T> = T | Promise<T>

// biome-ignore lint/suspicious/noConfusingVoidType: a store of release 1.1.0 returns nothing.
type Counted = CopyCounts | void

/**
 * Database that keeps a copy of one connection. Without `state`, each synchronization requests all lists.
 * A store that returns no counts has zeros in the result, and no `onChanges`.
 */
export interface CopyStore<Client = void> {
  /** Database and name of the copy. Stores with equal ones synchronize one after the other in a process. */
  readonly key?: readonly [database: object, name: string]
  /** Returns the cursor of a copy, or null if the copy does not exist. */
  cursor(list: ListName, copy: CopyName): Maybe<string | null>
  /** Returns the state of the current copy, or null if it is not known. */
  state?(list: ListName): Maybe<CopyState | null>
  /**
   * Writes rows, removals, the cursor and the state in one transaction. Counts what changes in the
   * current copy.
   * @throws CopyError `conflict` if the cursor of the copy is not `since`: another process has written
   */
  apply(changes: CopyChanges, onChanges?: OnChanges<Client>): Maybe<Counted>
  /** Counts the rows of a copy. */
  count(list: ListName, copy: CopyName): Maybe<number>
  /**
   * Replaces the current copy by the next one, in one transaction. Counts what differs between them.
   * @throws CopyError `conflict` if the cursor of the next copy is not `cursor`
   */
  swap(list: ListName, cursor: string, onChanges?: OnChanges<Client>): Maybe<Counted>
  /** Deletes the next copy, if there is one. */
  discard(list: ListName): Maybe<void>
}

/** Result of syncTransactions() for a list. */
export interface CopyResult extends CopyCounts {
  /** Rows of the copy, and of the list. */
  totalItems: number
  /** True if the copy is new: the first one, or one that replaced a copy with unknown changes. */
  rebuilt: boolean
  /** Time at which the service last read the institution; null before the first time. */
  refreshedAt: Date | null
}

/** Results of syncTransactions(). */
export interface SyncedCopies {
  portfolio: CopyResult
  account: CopyResult
  orders: CopyResult
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
  version: string | null
  refreshedAt: Date | null
}

export const ID_FIELDS = {
  portfolio_transactions: 'transactionId',
  account_transactions: 'movementId',
  transfer_orders: 'id',
} as const satisfies Record<ListName, string>

/** New copies that a call begins before it fails. */
const MAX_BUILDS = 3

/** Brings the copies of one connection up to date. */
export class CopySync<Client> {
  readonly #store: CopyStore<Client>
  readonly #onChanges: OnChanges<Client> | undefined
  /** Data version of the last response; null if the copies may differ from it without a sign. */
  #version: string | null = null
  #refreshedAt: Date | null = null

  constructor(store: CopyStore<Client>, onChanges: OnChanges<Client> | undefined) {
    this.#store = store
    this.#onChanges = onChanges
  }

  /**
   * Returns the result for a list without changes, which needs no request: its copy has the version of the
   * last response. Returns undefined if the list must be requested.
   */
  async unchanged(list: ListName): Promise<CopyResult | undefined> {
    if (this.#version === null || (await this.#store.cursor(list, 'next')) !== null)
      return undefined
    const state = (await this.#store.state?.(list)) ?? null
    if (state === null || state.version !== this.#version) return undefined
    const { totalItems } = state
    if ((await this.#store.count(list, 'current')) !== totalItems) return undefined
    return this.#result(totalItems, false, NO_COUNTS)
  }

  /** Reads the changes of a list. Builds a second copy if the first one cannot be continued. */
  async changes<Row extends object>(
    list: ListName,
    pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
  ): Promise<CopyResult> {
    const isBuilding = (await this.#store.cursor(list, 'next')) !== null
    const isComplete = (await this.#store.cursor(list, 'current')) !== null
    let copy: CopyName = isComplete && !isBuilding ? 'current' : 'next'
    const counts = { ...NO_COUNTS }
    for (let builds = 0; ; builds += 1) {
      const { error, cursor, totalItems } = await this.#advance(list, copy, pagesSince, counts)
      if (error === undefined) {
        const rebuilt = copy === 'next'
        if (rebuilt) await this.#swap(list, cursor, counts)
        // The versions of two connections may be equal. A lost cursor may be that of another connection.
        if (rebuilt) this.#version = null
        return this.#result(totalItems, rebuilt, counts)
      }
      if (builds === MAX_BUILDS) throw error
      await this.#store.discard(list)
      copy = 'next'
    }
  }

  /** Replaces the copy of a list by all its rows. */
  async replace<Row extends object>(list: ListName, page: ChangesPage<Row>): Promise<CopyResult> {
    const counts = { ...NO_COUNTS }
    const rebuilt = (await this.#store.cursor(list, 'current')) === null
    await this.#store.discard(list)
    await this.#apply(list, 'next', null, page, counts)
    await this.#swap(list, page.nextCursor, counts)
    return this.#result(page.totalItems, rebuilt, counts)
  }

  #result(totalItems: number, rebuilt: boolean, counts: CopyCounts): CopyResult {
    return { totalItems, rebuilt, ...counts, refreshedAt: this.#refreshedAt }
  }

  /** Stores all pages. Returns an error if the copy cannot be continued. */
  async #advance<Row extends object>(
    list: ListName,
    copy: CopyName,
    pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
    counts: CopyCounts,
  ): Promise<{ error?: Error; cursor: string; totalItems: number }> {
    let since = await this.#store.cursor(list, copy)
    let totalItems = 0
    try {
      for await (const page of pagesSince(since)) {
        await this.#apply(list, copy, since, page, counts)
        since = page.nextCursor
        totalItems = page.totalItems
      }
    } catch (error) {
      if (isLostCursor(error)) return { error, cursor: '', totalItems }
      throw error
    }
    const cursor = since ?? ''
    const count = await this.#store.count(list, copy)
    if (count === totalItems) return { cursor, totalItems }
    const message = `The copy has ${count} rows, and the list ${totalItems}`
    return { error: new CopyError('count_differs', message), cursor, totalItems }
  }

  async #apply<Row extends object>(
    list: ListName,
    copy: CopyName,
    since: string | null,
    page: ChangesPage<Row>,
    counts: CopyCounts,
  ): Promise<void> {
    const { items, removed, nextCursor: cursor, hasMore, ...state } = page
    const id = ID_FIELDS[list] as keyof Row
    const upserts = items.map((row) => ({ id: String(row[id]), row }))
    const { version, totalItems, refreshedAt } = state
    const changes = { list, copy, since, cursor, upserts, removed }
    const complete = hasMore ? null : { version, totalItems, refreshedAt }
    this.#add(counts, await this.#store.apply({ ...changes, state: complete }, this.#onChanges))
    this.#version = version
    this.#refreshedAt = refreshedAt
  }

  async #swap(list: ListName, cursor: string, counts: CopyCounts): Promise<void> {
    this.#add(counts, await this.#store.swap(list, cursor, this.#onChanges))
  }

  #add(counts: CopyCounts, added: Counted): void {
    if (added === undefined && this.#onChanges !== undefined)
      throw new TypeError('onChanges needs a store that counts changes, such as SqliteStore')
    counts.inserted += added?.inserted ?? 0
    counts.updated += added?.updated ?? 0
    counts.removed += added?.removed ?? 0
  }
}

const NO_COUNTS: CopyCounts = { inserted: 0, updated: 0, removed: 0 }
