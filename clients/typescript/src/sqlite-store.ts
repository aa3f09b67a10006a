import {
  type CopyChanges,
  type CopyCounts,
  type CopyName,
  type CopyState,
  type CopyStore,
  ID_FIELDS,
  type KnownCopy,
  type ListName,
  type ListRows,
  type OnChanges,
} from './copy.ts'
import { CopyError, nameTaken } from './errors.ts'
import { dayOf } from './options.ts'
import { oldestRefresh } from './refresh-time.ts'
import {
  addCounts,
  type Change,
  countsOf,
  latestOf,
  rowChangesOf,
  withStore,
} from './row-changes.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './rows.ts'
import {
  allNames,
  type DatabaseObject,
  isCurrent,
  isOwn,
  namesOf,
  type StoreNames,
  schemaOf,
} from './sqlite-schema.ts'
import { expectOpen, type StoreTransaction } from './transaction.ts'

type Value = string | number | bigint | null

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
  /**
   * Beginning of the names of the tables and views, such as `bank_`, where the database has others with the
   * names of this store. A copy belongs to its prefix. Default: none.
   */
  prefix?: string
}

export interface DeleteOptions {
  /** Also deletes the history of this connection. Default: false. */
  history?: boolean
}

/** Days as YYYY-MM-DD, inclusive. */
interface Days {
  from?: string | undefined
  to?: string | undefined
}

/** `store` of `onChanges`: the copy after the changes, inside the transaction that writes them. */
export interface SqliteReader {
  portfolioTransactions(days?: Days): IterableIterator<PortfolioTransaction>
  accountTransactions(days?: Days): IterableIterator<AccountTransaction>
  transferOrders(): IterableIterator<AssetsTransferOrder>
  refreshedAt(): Date | null
}

/** What a SqliteStore adds to the changes. */
export interface SqliteBound {
  readonly store: SqliteReader
}

interface Copy {
  id: number | bigint
  cursor: string
  version: string | null
  totalItems: number | null
  refreshedAt: string | null
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
export class SqliteStore implements CopyStore<void, SqliteBound>, SqliteReader {
  readonly #db: SqliteDatabase
  readonly #connection: string
  readonly #history: boolean
  readonly #names: StoreNames

  /**
   * @param connection your own name of the connection, not its token; one database may have many
   * @throws CopyError `name_taken` if the database has other tables or views with the names of the store
   */
  constructor(db: SqliteDatabase, connection: string, options: SqliteStoreOptions = {}) {
    if (typeof connection !== 'string') throw new TypeError('connection must be a text')
    this.#db = db
    this.#connection = connection
    this.#history = options.history ?? false
    this.#names = namesOf(options.prefix ?? '')
    const [[timeout] = []] = this.#all('pragma busy_timeout')
    if (Number(timeout) === 0) db.exec(`pragma busy_timeout = ${WAIT_MS}`)
    if (isCurrent(this.#names, this.#objects())) return
    this.#transaction(() => {
      const objects = this.#objects()
      // Another process may have made the tables.
      if (isCurrent(this.#names, objects)) return
      const other = objects.find((each) => !isOwn(this.#names, each))
      if (other !== undefined) throw nameTaken(other.name, 'SqliteStore(db, name')
      // A copy of release 1.1.0 has the tables without the newer columns, and smaller views.
      for (const statement of schemaOf(this.#names)) db.exec(statement)
    })
  }

  /** Database and name of the copy: see `CopyStore`. */
  get key(): readonly [object, string] {
    return [this.#db, JSON.stringify([this.#names.copy, this.#connection])]
  }

  cursor(list: ListName, copy: CopyName): string | null {
    return this.#find(list, copy)?.cursor ?? null
  }

  state(list: ListName): CopyState | null {
    return stateOf(this.#find(list, 'current'))
  }

  knownCopies(): KnownCopy[] {
    const { copy, row } = this.#names
    const sql = `select list, copy, cursor, version, total_items, refreshed_at,
        (select count(*) from ${row} where copy_id = c.id)
      from ${copy} c where connection = ?`
    return this.#all(sql, this.#connection).map(([list, name, ...values]) => {
      const copy = copyOf([null, ...values])
      const count = Number(values.at(-1))
      return { list, copy: name, cursor: copy.cursor, state: stateOf(copy), count } as KnownCopy
    })
  }

  apply(changes: CopyChanges, onChanges?: OnChanges<void, SqliteBound>): CopyCounts {
    const { list, copy, since, cursor, upserts, removed, state } = changes
    return this.#transaction((transaction) => {
      this.#expect(list, copy, since)
      this.#run(
        `insert into ${this.#names.copy} (connection, list, copy, cursor, version, total_items, refreshed_at)
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
      const latest = latestOf(upserts, removed)
      if (latest.size === 0) return countsOf([])
      const id = this.#find(list, copy)?.id ?? null
      if (copy === 'next') {
        // Nobody reads it yet, so what it had before is not needed. SQLite inserts faster in the order of the key.
        this.#writeRows(
          id,
          [...latest].sort(([a], [b]) => (a < b ? -1 : 1)),
        )
        return countsOf([])
      }
      const done = this.#differing(id, latest)
      this.#writeRows(
        id,
        done.map((change) => [change.id, change.after]),
      )
      const change = { list, cursor, keep: this.#history }
      return this.#report(change, done, transaction, onChanges)
    })
  }

  count(list: ListName, copy: CopyName): number {
    return this.#count(this.#find(list, copy)?.id ?? null)
  }

  swap(list: ListName, cursor: string, onChanges?: OnChanges<void, SqliteBound>): CopyCounts {
    return this.#transaction((transaction) => {
      this.#expect(list, 'next', cursor)
      const next = this.#find(list, 'next')?.id ?? null
      const before = this.#find(list, 'current')?.id ?? null
      // The app reads the new copy while it hears what differs from the old one.
      if (before !== null) this.#rename(before, 'before')
      this.#rename(next, 'current')
      const counts = { inserted: 0, updated: 0, removed: 0 }
      const isFirst = before === null
      const change = { list, cursor, keep: this.#history && !isFirst }
      if (isFirst && onChanges === undefined) counts.inserted = this.#count(next)
      else
        for (const block of this.#differences(next, before))
          addCounts(counts, this.#report(change, block, transaction, onChanges))
      this.#delete(before)
      return counts
    })
  }

  discard(list: ListName): void {
    this.#transaction(() => this.#delete(this.#find(list, 'next')?.id ?? null))
  }

  /**
   * Returns the time at which the service last read the institution, for the oldest list of the copy.
   * Returns null if the copy is not complete, or the time is not known.
   */
  refreshedAt(): Date | null {
    const sql = `select version, refreshed_at from ${this.#names.copy} where connection = ? and copy = 'current'`
    const copies = this.#all(sql, this.#connection) as (string | null)[][]
    return oldestRefresh(copies)
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

  /**
   * Deletes the copy of this connection. The history stays, unless you ask for its end. With the option `history` of the store,
   * it gets each row of the copy as a removed one.
   */
  delete(options: DeleteOptions = {}): void {
    this.#transaction(() => {
      if (this.#history && options.history !== true) this.#keepAll()
      for (const list of Object.keys(ID_FIELDS) as ListName[])
        for (const copy of ['current', 'next'] as const)
          this.#delete(this.#find(list, copy)?.id ?? null)
      if (options.history === true)
        this.#run(`delete from ${this.#names.history} where connection = ?`, this.#connection)
    })
  }

  /** Returns what onChanges reads with. */
  #readerOf(transaction: StoreTransaction): SqliteReader {
    return {
      portfolioTransactions: (days = {}) => this.#rows('portfolio_transactions', days, transaction),
      accountTransactions: (days = {}) => this.#rows('account_transactions', days, transaction),
      transferOrders: () => this.#rows('transfer_orders', {}, transaction),
      refreshedAt: () => {
        expectOpen(transaction)
        return this.refreshedAt()
      },
    }
  }

  *#rows<List extends ListName>(
    list: List,
    { from, to }: Days,
    transaction?: StoreTransaction,
  ): Generator<ListRows[List], void> {
    if (transaction !== undefined) expectOpen(transaction)
    const sql = `select row from ${this.#names.row} where copy_id = ?
        and (? is null or ${DAY} >= ?) and (? is null or ${DAY} <= ?)
      order by ${DAY} desc, json_extract(row, '$.operationDateHour') desc, id desc`
    const id = this.#find(list, 'current')?.id ?? null
    const [first, last] = [dayOf('from', from) ?? null, dayOf('to', to) ?? null]
    const found = this.#all(sql, id, first, first, last, last) as [string][]
    for (const [row] of found) yield JSON.parse(row)
  }

  /** Returns the rows of a page that differ from those of a copy, in the order of the page. */
  #differing(copyId: Copy['id'] | null, latest: Map<string, string | null>): Change[] {
    const find = this.#db.prepare(`select row from ${this.#names.row} where copy_id = ? and id = ?`)
    const changes: Change[] = []
    for (const [id, after] of latest) {
      const [before = null] = valuesOf(find.get(copyId, id)) as (string | null)[]
      if (before !== after) changes.push({ id, before, after })
    }
    return changes
  }

  /** Writes the last state of rows; null for a removed row. */
  #writeRows(copyId: Copy['id'] | null, rows: [id: string, after: string | null][]): void {
    const { row } = this.#names
    const write = this.#db.prepare(`insert or replace into ${row} values (?, ?, ?)`)
    const remove = this.#db.prepare(`delete from ${row} where copy_id = ? and id = ?`)
    for (const [id, after] of rows) {
      if (after === null) remove.run(copyId, id)
      else write.run(copyId, id, after)
    }
  }

  /** Keeps all rows of the copy as removed ones. */
  #keepAll(): void {
    const { history, copy, row } = this.#names
    const sql = `insert into ${history} (connection, list, id, before, after, seen_at, cursor)
      select c.connection, c.list, r.id, r.row, null, ?, c.cursor
      from ${copy} c join ${row} r on r.copy_id = c.id
      where c.connection = ? and c.copy = 'current' order by c.list, r.id`
    this.#run(sql, new Date().toISOString(), this.#connection)
  }

  /** Counts the rows of a copy. */
  #count(copyId: Copy['id'] | null): number {
    const sql = `select count(*) from ${this.#names.row} where copy_id = ?`
    const [[count] = []] = this.#all(sql, copyId)
    return Number(count)
  }

  /** Compares a copy with the one that it replaces. */
  *#differences(next: Copy['id'] | null, before: Copy['id'] | null): Generator<Change[], void> {
    const { row } = this.#names
    const upserts = `select n.id, c.row as before, n.row as after from ${row} n
      left join ${row} c on c.copy_id = ? and c.id = n.id
      where n.copy_id = ? and n.row is not c.row and n.id > ? order by n.id limit ${BLOCK_ROWS}`
    const removals = `select c.id, c.row as before, null as after from ${row} c
      where c.copy_id = ? and c.id > ?
        and not exists (select 1 from ${row} n where n.copy_id = ? and n.id = c.id)
      order by c.id limit ${BLOCK_ROWS}`
    yield* this.#blocks(upserts, (last) => [before, next, last])
    yield* this.#blocks(removals, (last) => [before, last, next])
  }

  *#blocks(sql: string, valuesAfter: (last: string) => Value[]): Generator<Change[], void> {
    for (let last: string | undefined = ''; last !== undefined; ) {
      const found = this.#all(sql, ...valuesAfter(last)) as [string, string | null, string | null][]
      const block = found.map(([id, before, after]) => ({ id, before, after }))
      yield block
      last = block.at(-1)?.id
    }
  }

  /** Counts changes of the current copy, keeps what they replace, and tells the app. */
  #report(
    { list, cursor, keep }: { list: ListName; cursor: string; keep: boolean },
    changes: Change[],
    transaction: StoreTransaction,
    onChanges: OnChanges<void, SqliteBound> | undefined,
  ): CopyCounts {
    if (changes.length === 0) return countsOf(changes)
    if (keep) {
      const at = new Date().toISOString()
      const insert = `insert into ${this.#names.history} (connection, list, id, before, after, seen_at, cursor)
        values (?, ?, ?, ?, ?, ?, ?)`
      for (const { id, before, after } of changes)
        this.#run(insert, this.#connection, list, id, before, after, at, cursor)
    }
    const told = withStore(rowChangesOf(list, changes), this.#readerOf(transaction))
    const result: unknown = onChanges?.(told)
    if (result instanceof Promise) {
      result.catch(() => {})
      throw new TypeError('onChanges of a SqliteStore must not be asynchronous')
    }
    return countsOf(changes)
  }

  #find(list: ListName, copy: CopyName): Copy | undefined {
    const sql = `select id, cursor, version, total_items, refreshed_at from ${this.#names.copy}
      where connection = ? and list = ? and copy = ?`
    const [found] = this.#all(sql, this.#connection, list, copy)
    return found && copyOf(found)
  }

  #expect(list: ListName, copy: CopyName, cursor: string | null): void {
    if (this.cursor(list, copy) !== cursor)
      throw new CopyError('conflict', 'Another process has changed the copy: synchronize again')
  }

  #rename(copyId: Copy['id'] | null, copy: CopyName | 'before'): void {
    this.#run(`update ${this.#names.copy} set copy = ? where id = ?`, copy, copyId)
  }

  #delete(copyId: Copy['id'] | null): void {
    this.#run(`delete from ${this.#names.row} where copy_id = ?`, copyId)
    this.#run(`delete from ${this.#names.copy} where id = ?`, copyId)
  }

  /** Tables and views that have the names of the store, also temporary ones, which would hide those. */
  #objects(): DatabaseObject[] {
    const names = allNames(this.#names)
    const marks = names.map(() => '?').join(', ')
    const sql = `select lower(name) as name, type, coalesce(sql, '') as sql,
        case when type = 'table' then
          (select group_concat(name, ' ') from (select name from pragma_table_info(o.name)))
        end as columns
      from (select * from sqlite_master union all select * from sqlite_temp_master) o
      where lower(name) in (${marks})`
    const found = this.#all(sql, ...names) as [string, string, string, string | null][]
    return found.map(([name, type, sql, columns]) => ({ name, type, sql, columns }))
  }

  #run(sql: string, ...values: Value[]): void {
    this.#db.prepare(sql).run(...values)
  }

  /** Returns the values of each row. The app's database may return arrays, or integers as bigint. */
  #all(sql: string, ...values: Value[]): Value[][] {
    return waiting(() =>
      this.#db
        .prepare(sql)
        .all(...values)
        .map(valuesOf),
    )
  }

  #transaction<T>(work: (transaction: StoreTransaction) => T): T {
    return waiting(() => {
      begin(this.#db)
      const transaction = { isOpen: true }
      try {
        const result = work(transaction)
        transaction.isOpen = false
        this.#db.exec('commit')
        return result
      } catch (error) {
        transaction.isOpen = false
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

/**
 * Begins a transaction.
 * @throws CopyError `transaction_open` if the app has begun one: the store must not end it
 */
function begin(db: SqliteDatabase): void {
  try {
    db.exec('begin immediate')
  } catch (error) {
    if (!/within a transaction/.test(String((error as Error)?.message))) throw error
    const message = 'The database has an open transaction: end it before the store writes'
    throw new CopyError('transaction_open', message)
  }
}

function copyOf(values: Value[]): Copy {
  const [id, cursor, version, total, refreshedAt] = values as [number, string, ...(string | null)[]]
  const totalItems = total == null ? null : Number(total)
  return { id, cursor, version: version ?? null, totalItems, refreshedAt: refreshedAt ?? null }
}

/** Returns the state of a copy, or null if it is not known. */
function stateOf(copy: Copy | undefined): CopyState | null {
  if (copy === undefined || copy.totalItems === null) return null
  const { version, totalItems, refreshedAt } = copy
  return { version, totalItems, refreshedAt: refreshedAt === null ? null : new Date(refreshedAt) }
}

/** Values of a row, which is an object or an array. */
function valuesOf(row: unknown): Value[] {
  return Array.isArray(row) ? row : Object.values(row ?? {})
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
