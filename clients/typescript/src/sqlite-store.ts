import {
  type CopyChanges,
  type CopyCounts,
  type CopyName,
  type CopyState,
  type CopyStore,
  ID_FIELDS,
  type ListName,
  type ListRows,
  type OnChanges,
  type RowChanges,
} from './copy.ts'
import { CopyError } from './errors.ts'
import { dayOf } from './options.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './rows.ts'
import { SCHEMA } from './sqlite-schema.ts'

type Value = string | number | null

/** `DatabaseSync` of `node:sqlite`, or a database with the same functions. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): {
    run(...values: Value[]): unknown
    get(...values: Value[]): unknown
    all(...values: Value[]): unknown[]
  }
}

export interface SqliteStoreOptions {
  /** Keeps each row that changes or is removed, as it was, in the view `investment_changes`. Default: false. */
  history?: boolean
}

/** Days as YYYY-MM-DD, inclusive. */
interface Days {
  from?: string | undefined
  to?: string | undefined
}

/** JSON of a row before and after a change; null if the row did not or does not exist. */
interface Change {
  id: string
  before: string | null
  after: string | null
}

interface Copy {
  id: number
  cursor: string
  version: string | null
  total_items: number | null
  refreshed_at: string | null
}

const WAIT_MS = 5000
/** Rows that are compared at a time when a copy replaces another one. */
const BLOCK_ROWS = 1000
const DAY = `coalesce(json_extract(row, '$.operationDateDay'), json_extract(row, '$.valueDateDay'))`

/**
 * Keeps copies in SQLite. The views `portfolio_transactions`, `account_transactions` and `transfer_orders`
 * have the complete copies: `connection`, and one column for each field, with decimals as text. It waits
 * up to 5 s for another process, unless the database has a time of its own.
 */
export class SqliteStore implements CopyStore {
  readonly #db: SqliteDatabase
  readonly #connection: string
  readonly #history: boolean

  /** @param connection your own name of the connection, not its token; one database may have many */
  constructor(db: SqliteDatabase, connection: string, options: SqliteStoreOptions = {}) {
    if (typeof connection !== 'string') throw new TypeError('connection must be a text')
    this.#db = db
    this.#connection = connection
    this.#history = options.history ?? false
    const { timeout } = this.#get<{ timeout: number }>('pragma busy_timeout') ?? {}
    if (timeout === 0) db.exec(`pragma busy_timeout = ${WAIT_MS}`)
    if (this.#isCurrent()) return
    this.#transaction(() => {
      // A copy of release 1.1.0 has the tables without the newer columns, and smaller views.
      if (!this.#isCurrent()) for (const statement of SCHEMA) db.exec(statement)
    })
  }

  cursor(list: ListName, copy: CopyName): string | null {
    return this.#find(list, copy)?.cursor ?? null
  }

  state(list: ListName): CopyState | null {
    const { version, total_items, refreshed_at } = this.#find(list, 'current') ?? {}
    if (version === undefined || total_items == null) return null
    return {
      version,
      totalItems: total_items,
      refreshedAt: refreshed_at ? new Date(refreshed_at) : null,
    }
  }

  apply(changes: CopyChanges, onChanges?: OnChanges): CopyCounts {
    const { list, copy, since, cursor, upserts, removed, state } = changes
    return this.#transaction(() => {
      this.#expect(list, copy, since)
      this.#run(
        `insert into investment_copy (connection, list, copy, cursor, version, total_items, refreshed_at)
          values (?, ?, ?, ?, ?, ?, ?)
          on conflict (connection, list, copy) do update set cursor = excluded.cursor,
            version = excluded.version, total_items = excluded.total_items,
            refreshed_at = coalesce(excluded.refreshed_at, refreshed_at)`,
        this.#connection,
        list,
        copy,
        cursor,
        state?.version ?? null,
        state?.totalItems ?? null,
        state?.refreshedAt?.toISOString() ?? null,
      )
      const id = this.#find(list, copy)?.id ?? null
      const found = this.#db.prepare('select row from investment_row where copy_id = ? and id = ?')
      const write = this.#db.prepare('insert or replace into investment_row values (?, ?, ?)')
      const remove = this.#db.prepare('delete from investment_row where copy_id = ? and id = ?')
      const latest = new Map<string, string | null>()
      for (const upsert of upserts) latest.set(upsert.id, JSON.stringify(upsert.row))
      for (const removal of removed) latest.set(removal, null)
      const done: Change[] = []
      for (const [rowId, after] of latest) {
        const { row: before = null } = (found.get(id, rowId) ?? {}) as { row?: string }
        if (before === after) continue
        if (after === null) remove.run(id, rowId)
        else write.run(id, rowId, after)
        done.push({ id: rowId, before, after })
      }
      return this.#report(list, cursor, copy === 'current' ? done : [], this.#history, onChanges)
    })
  }

  count(list: ListName, copy: CopyName): number {
    const sql = 'select count(*) as count from investment_row where copy_id = ?'
    return this.#get<{ count: number }>(sql, this.#find(list, copy)?.id ?? null)?.count ?? 0
  }

  swap(list: ListName, cursor: string, onChanges?: OnChanges): CopyCounts {
    return this.#transaction(() => {
      this.#expect(list, 'next', cursor)
      const counts = { inserted: 0, updated: 0, removed: 0 }
      const isFirst = this.#find(list, 'current') === undefined
      for (const block of this.#differences(list)) {
        const added = this.#report(list, cursor, block, this.#history && !isFirst, onChanges)
        counts.inserted += added.inserted
        counts.updated += added.updated
        counts.removed += added.removed
      }
      this.#delete(list, 'current')
      const sql =
        'update investment_copy set copy = ? where connection = ? and list = ? and copy = ?'
      this.#run(sql, 'current', this.#connection, list, 'next')
      return counts
    })
  }

  discard(list: ListName): void {
    this.#transaction(() => this.#delete(list, 'next'))
  }

  /**
   * Returns the time at which the service last read the institution, for the oldest list of the copy.
   * Returns null if the copy is not complete, or the time is not known.
   */
  refreshedAt(): Date | null {
    const sql = `select version, refreshed_at from investment_copy where connection = ? and copy = 'current'`
    const copies = this.#all<Copy>(sql, this.#connection)
    // A list without changes was not requested: it is as new as another one with its version.
    const times = copies.map(({ version, refreshed_at }) => {
      const same = copies.filter((other) => version !== null && other.version === version)
      return same.reduce((time, other) => max(time, other.refreshed_at ?? ''), refreshed_at ?? '')
    })
    const [oldest = ''] = times.sort()
    return oldest === '' || copies.length < Object.keys(ID_FIELDS).length ? null : new Date(oldest)
  }

  /** Iterates over the portfolio transactions of the copy, newest first. All are of one state. */
  portfolioTransactions(days: Days = {}): IterableIterator<PortfolioTransaction> {
    return this.#rows('portfolio_transactions', days)
  }

  /** Iterates over the account transactions of the copy, newest first. All are of one state. */
  accountTransactions(days: Days = {}): IterableIterator<AccountTransaction> {
    return this.#rows('account_transactions', days)
  }

  /** Iterates over the completed transfer orders of the copy. It does not keep their order. */
  transferOrders(): IterableIterator<AssetsTransferOrder> {
    return this.#rows('transfer_orders', {})
  }

  /** Deletes all that the store has written for this connection, also the history. */
  delete(): void {
    this.#transaction(() => {
      for (const list of Object.keys(ID_FIELDS) as ListName[])
        for (const copy of ['current', 'next'] as const) this.#delete(list, copy)
      this.#run('delete from investment_history where connection = ?', this.#connection)
    })
  }

  *#rows<List extends ListName>(list: List, { from, to }: Days): Generator<ListRows[List], void> {
    const sql = `select row from investment_row where copy_id = ?1
        and (?2 is null or ${DAY} >= ?2) and (?3 is null or ${DAY} <= ?3)
      order by ${DAY} desc, json_extract(row, '$.operationDateHour') desc, id desc`
    const id = this.#find(list, 'current')?.id ?? null
    const days = [dayOf('from', from) ?? null, dayOf('to', to) ?? null]
    for (const { row } of this.#all<{ row: string }>(sql, id, ...days)) yield JSON.parse(row)
  }

  /** Compares the next copy with the current one. */
  *#differences(list: ListName): Generator<Change[], void> {
    const next = this.#find(list, 'next')?.id ?? null
    const current = this.#find(list, 'current')?.id ?? null
    const upserts = `select n.id, c.row as before, n.row as after from investment_row n
      left join investment_row c on c.copy_id = ?2 and c.id = n.id
      where n.copy_id = ?1 and n.row is not c.row and n.id > ?3 order by n.id limit ${BLOCK_ROWS}`
    const removals = `select c.id, c.row as before, null as after from investment_row c
      where c.copy_id = ?2 and c.id > ?3
        and not exists (select 1 from investment_row n where n.copy_id = ?1 and n.id = c.id)
      order by c.id limit ${BLOCK_ROWS}`
    for (const sql of [upserts, removals])
      for (let last: string | undefined = ''; last !== undefined; ) {
        const block: Change[] = this.#all<Change>(sql, next, current, last)
        yield block
        last = block.at(-1)?.id
      }
  }

  /** Counts changes of the current copy, keeps what they replace, and tells the app. */
  #report(
    list: ListName,
    cursor: string,
    changes: Change[],
    keep: boolean,
    onChanges: OnChanges | undefined,
  ): CopyCounts {
    const counts = { inserted: 0, updated: 0, removed: 0 }
    const told = { list, upserts: [] as unknown[], removed: [] as string[], previous: new Map() }
    const at = new Date().toISOString()
    const insert = `insert into investment_history (connection, list, id, before, after, seen_at, cursor)
      values (?, ?, ?, ?, ?, ?, ?)`
    for (const { id, before, after } of changes) {
      counts[before === null ? 'inserted' : after === null ? 'removed' : 'updated'] += 1
      if (keep) this.#run(insert, this.#connection, list, id, before, after, at, cursor)
      if (onChanges === undefined) continue
      if (before !== null) told.previous.set(id, JSON.parse(before))
      if (after === null) told.removed.push(id)
      else told.upserts.push(JSON.parse(after))
    }
    const result: unknown = changes.length > 0 ? onChanges?.(told as RowChanges) : undefined
    if (result instanceof Promise) throw new TypeError('onChanges must not be asynchronous')
    return counts
  }

  #find(list: ListName, copy: CopyName): Copy | undefined {
    const sql = 'select * from investment_copy where connection = ? and list = ? and copy = ?'
    return this.#get<Copy>(sql, this.#connection, list, copy)
  }

  #expect(list: ListName, copy: CopyName, cursor: string | null): void {
    if (this.cursor(list, copy) !== cursor)
      throw new CopyError('conflict', 'Another process has changed the copy: synchronize again')
  }

  #delete(list: ListName, copy: CopyName): void {
    const id = this.#find(list, copy)?.id ?? null
    this.#run('delete from investment_row where copy_id = ?', id)
    this.#run('delete from investment_copy where id = ?', id)
  }

  #isCurrent(): boolean {
    const sql = `select 1 from pragma_table_info('investment_copy') where name = 'refreshed_at'`
    return this.#get(sql) !== undefined
  }

  #run(sql: string, ...values: Value[]): void {
    this.#db.prepare(sql).run(...values)
  }

  #get<Row>(sql: string, ...values: Value[]): Row | undefined {
    return waiting(() => (this.#db.prepare(sql).get(...values) ?? undefined) as Row | undefined)
  }

  #all<Row>(sql: string, ...values: Value[]): Row[] {
    return waiting(() => this.#db.prepare(sql).all(...values) as Row[])
  }

  #transaction<T>(work: () => T): T {
    return waiting(() => {
      this.#db.exec('begin immediate')
      try {
        const result = work()
        this.#db.exec('commit')
        return result
      } catch (error) {
        try {
          this.#db.exec('rollback')
        } catch {
          // SQLite has already rolled back, for example because the disk is full.
        }
        throw error
      }
    })
  }
}

/** Names the error of a database that another process has locked for longer than the wait. */
function waiting<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!/^database (\w+ )?is locked/.test(String((error as Error)?.message))) throw error
    throw new CopyError('conflict', 'Another process locks the database: synchronize again')
  }
}

const max = (a: string, b: string) => (a > b ? a : b)
