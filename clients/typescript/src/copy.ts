import type { CallEnd } from './call-end.ts'
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

/** What a store has of a copy. */
export interface KnownCopy {
  list: ListName
  copy: CopyName
  cursor: string
  /** Null if it is not known. */
  state: CopyState | null
  /** Number of its rows. */
  count: number
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
 * Called inside the transaction that writes the changes: an error undoes them. The stores of this package add `store` to the
 * changes: it reads the copy as it is after them, inside the transaction. With a PostgresStore, the function may be
 * asynchronous, and gets the client of the transaction. With a SqliteStore, it must not be asynchronous.
 */
export type OnChanges<Client = void, Bound = unknown> = (
  changes: RowChanges & Bound,
  client: Client,
) => void | Promise<void>

export interface CopyCounts {
  inserted: number
  updated: number
  removed: number
}

type Maybe<T> = T | Promise<T>

// biome-ignore lint/suspicious/noConfusingVoidType: a store of release 1.1.0 returns nothing.
type Counted = CopyCounts | void

/**
 * Database that keeps a copy of one connection. Without `state` and `knownCopies`, each synchronization requests all lists.
 * A store that returns no counts has zeros in the result, and no `onChanges`. A function may end early with `signal`, which
 * aborts when the time of the call is over, or when the app ends the call.
 */
export interface CopyStore<Client = void, Bound = unknown> {
  /** Database and name of the copy. Stores with equal ones synchronize one after the other in a process. */
  readonly key?: readonly [database: object, name: string]
  /** Returns the cursor of a copy, or null if the copy does not exist. */
  cursor(list: ListName, copy: CopyName, signal?: AbortSignal): Maybe<string | null>
  /** Returns the state of the current copy, or null if it is not known. */
  state?(list: ListName, signal?: AbortSignal): Maybe<CopyState | null>
  /** Returns all that the store has, instead of many calls of `cursor`, `state` and `count`. */
  knownCopies?(signal?: AbortSignal): Maybe<KnownCopy[]>
  /**
   * Writes rows, removals, the cursor and the state in one transaction. Counts what changes in the
   * current copy.
   * @throws CopyError `conflict` if the cursor of the copy is not `since`: another process has written
   */
  apply(
    changes: CopyChanges,
    onChanges?: OnChanges<Client, Bound>,
    signal?: AbortSignal,
  ): Maybe<Counted>
  /** Counts the rows of a copy. */
  count(list: ListName, copy: CopyName, signal?: AbortSignal): Maybe<number>
  /**
   * Replaces the current copy by the next one, in one transaction. Counts what differs between them.
   * @throws CopyError `conflict` if the cursor of the next copy is not `cursor`
   */
  swap(
    list: ListName,
    cursor: string,
    onChanges?: OnChanges<Client, Bound>,
    signal?: AbortSignal,
  ): Maybe<Counted>
  /** Deletes the next copy, if there is one. */
  discard(list: ListName, signal?: AbortSignal): Maybe<void>
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
export class CopySync<Client, Bound> {
  readonly #store: CopyStore<Client, Bound>
  readonly #onChanges: OnChanges<Client, Bound> | undefined
  readonly #end: CallEnd
  /** What the store had when it was last read. */
  #known: KnownCopy[] = []
  /** Data version of the last response; null if the copies may differ from it without a sign. */
  #version: string | null = null
  #refreshedAt: Date | null = null

  constructor(
    store: CopyStore<Client, Bound>,
    onChanges: OnChanges<Client, Bound> | undefined,
    end: CallEnd,
  ) {
    this.#store = store
    this.#end = end
    if (onChanges !== undefined)
      this.#onChanges = (changes, client) => {
        const result = onChanges(changes, client)
        // No timer ends a function that is not asynchronous.
        end.check()
        return result
      }
  }

  /**
   * Returns the result for a list without changes, which needs no request: its copy has the version of the
   * last response. Returns undefined if the list must be requested.
   */
  async unchanged(list: ListName): Promise<CopyResult | undefined> {
    if (this.#version === null) return undefined
    if (this.#store.knownCopies === undefined) await this.#read(list)
    const { current, next } = this.#copiesOf(list)
    if (next !== undefined || current?.state?.version !== this.#version) return undefined
    const { totalItems } = current.state
    if (current.count !== totalItems) return undefined
    return this.#result(totalItems, false, NO_COUNTS)
  }

  /** Reads the changes of a list. Builds a second copy if the first one cannot be continued. */
  async changes<Row extends object>(
    list: ListName,
    pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
  ): Promise<CopyResult> {
    await this.#read(list)
    const { current, next } = this.#copiesOf(list)
    let copy: CopyName = current !== undefined && next === undefined ? 'current' : 'next'
    let known = copy === 'current' ? current : next
    const counts = { ...NO_COUNTS }
    for (let builds = 0; ; builds += 1) {
      const advanced = await this.#advance(list, copy, known, pagesSince, counts)
      const { error, cursor, totalItems } = advanced
      if (error === undefined) {
        const rebuilt = copy === 'next'
        if (rebuilt) await this.#swap(list, cursor, counts)
        // The versions of two connections may be equal. A lost cursor may be that of another connection.
        if (rebuilt) this.#version = null
        return this.#result(totalItems, rebuilt, counts)
      }
      if (builds === MAX_BUILDS) throw error
      await this.#wait((signal) => this.#store.discard(list, signal))
      copy = 'next'
      known = undefined
    }
  }

  /** Replaces the copy of a list by all its rows. */
  async replace<Row extends object>(list: ListName, page: ChangesPage<Row>): Promise<CopyResult> {
    const counts = { ...NO_COUNTS }
    await this.#read(list)
    const { current, next } = this.#copiesOf(list)
    if (next !== undefined) await this.#wait((signal) => this.#store.discard(list, signal))
    await this.#apply(list, 'next', null, page, counts)
    await this.#swap(list, page.nextCursor, counts)
    return this.#result(page.totalItems, current === undefined, counts)
  }

  #result(totalItems: number, rebuilt: boolean, counts: CopyCounts): CopyResult {
    return { totalItems, rebuilt, ...counts, refreshedAt: this.#refreshedAt }
  }

  /** Waits for a function of the store until the end of the call. */
  async #wait<T>(work: (signal: AbortSignal) => Maybe<T>): Promise<T> {
    this.#end.check()
    const result = work(this.#end.signal)
    return result instanceof Promise ? this.#end.until(result) : result
  }

  #copiesOf(list: ListName): Partial<Record<CopyName, KnownCopy>> {
    const own = this.#known.filter((known) => known.list === list)
    return Object.fromEntries(own.map((known) => [known.copy, known]))
  }

  /** Reads what the store has, of a list at least. */
  async #read(list: ListName): Promise<void> {
    const store = this.#store
    if (store.knownCopies !== undefined) {
      this.#known = await this.#wait(async (signal) => (await store.knownCopies?.(signal)) ?? [])
      return
    }
    this.#known = []
    for (const copy of ['current', 'next'] as const) {
      const cursor = await this.#wait((signal) => store.cursor(list, copy, signal))
      if (cursor === null) continue
      const isCurrent = copy === 'current' && store.state !== undefined
      const state = isCurrent
        ? await this.#wait(async (signal) => (await store.state?.(list, signal)) ?? null)
        : null
      const count = await this.#wait((signal) => store.count(list, copy, signal))
      this.#known.push({ list, copy, cursor, state, count })
    }
  }

  /** Stores all pages. Returns an error if the copy cannot be continued. */
  async #advance<Row extends object>(
    list: ListName,
    copy: CopyName,
    known: KnownCopy | undefined,
    pagesSince: (cursor: string | null) => AsyncIterable<ChangesPage<Row>>,
    counts: CopyCounts,
  ): Promise<{ error?: Error; cursor: string; totalItems: number }> {
    let since = known?.cursor ?? null
    // The store has compared the cursor, so no other process has changed the rows.
    let count = known?.count
    let totalItems = 0
    try {
      for await (const page of pagesSince(since)) {
        await this.#apply(list, copy, since, page, counts)
        if (page.items.length + page.removed.length > 0) count = undefined
        since = page.nextCursor
        totalItems = page.totalItems
      }
    } catch (error) {
      if (isLostCursor(error)) return { error, cursor: '', totalItems }
      throw error
    }
    const cursor = since ?? ''
    count ??= await this.#wait((signal) => this.#store.count(list, copy, signal))
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
    const { items, removed, nextCursor: cursor, hasMore, ...rest } = page
    const id = ID_FIELDS[list] as keyof Row
    const upserts = items.map((row) => ({ id: String(row[id]), row }))
    const { version, totalItems, refreshedAt } = rest
    const state = hasMore ? null : { version, totalItems, refreshedAt }
    const changes = { list, copy, since, cursor, upserts, removed, state }
    const added = await this.#wait((signal) => this.#store.apply(changes, this.#onChanges, signal))
    this.#add(counts, added)
    this.#version = version
    this.#refreshedAt = refreshedAt
  }

  async #swap(list: ListName, cursor: string, counts: CopyCounts): Promise<void> {
    const added = await this.#wait((signal) =>
      this.#store.swap(list, cursor, this.#onChanges, signal),
    )
    this.#add(counts, added)
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
