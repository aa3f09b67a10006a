import { until } from './call-end.ts'
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
import { MARK, postgresSchema } from './postgres-schema.ts'
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
import { allNames, namesOf, type StoreNames } from './sqlite-schema.ts'
import type { DeleteOptions, SqliteStoreOptions } from './sqlite-store.ts'
import {
  expectOpen,
  insideTransaction,
  type StoreTransaction,
  transactionOf,
} from './transaction.ts'

/** Client of a pool of `pg`, as far as the store uses it. */
export interface PostgresClient {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[] }>
  release(error?: Error | boolean): void
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
}

/** Pool of `pg`, as far as the store uses it. */
export interface PostgresPool<Client extends PostgresClient = PostgresClient> {
  connect(): Promise<Client>
}

export type PostgresStoreOptions = SqliteStoreOptions

/** Days as YYYY-MM-DD, inclusive. */
interface Days {
  from?: string | undefined
  to?: string | undefined
}

/** `store` of `onChanges`: the copy after the changes, inside the transaction that writes them. */
export interface PostgresReader {
  portfolioTransactions(days?: Days): AsyncIterableIterator<PortfolioTransaction>
  accountTransactions(days?: Days): AsyncIterableIterator<AccountTransaction>
  transferOrders(): AsyncIterableIterator<AssetsTransferOrder>
  refreshedAt(): Promise<Date | null>
}

/** What a PostgresStore adds to the changes. */
export interface PostgresBound {
  readonly store: PostgresReader
}

interface Copy {
  id: number
  cursor: string
  version: string | null
  totalItems: number | null
  refreshedAt: string | null
}

/** Longest wait for another process that writes the copy. */
const WAIT = '5s'
/** Rows that are compared at a time when a copy replaces another one. */
const BLOCK_ROWS = 1000
/** Errors of PostgreSQL after which the same work succeeds later: serialization, deadlock, lock timeout. */
const CONFLICTS = ['40001', '40P01', '55P03']
const DAY = `coalesce(row ->> 'operationDateDay', row ->> 'valueDateDay')`
const HOUR = `(row ->> 'operationDateHour')`
const TIME = `to_char(refreshed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/**
 * Keeps copies in PostgreSQL 12 or later, with the guarantees of SqliteStore. The views have one column for each
 * field: decimals are `numeric`, so sums in SQL are exact. The first call makes the tables and views in the
 * first schema of the `search_path`.
 */
export class PostgresStore<Client extends PostgresClient = PostgresClient>
  implements CopyStore<Client, PostgresBound>, PostgresReader
{
  readonly #pool: PostgresPool<Client>
  readonly #connection: string
  readonly #history: boolean
  readonly #names: StoreNames
  #ready: Promise<void> | undefined

  /** @param connection your own name of the connection, not its token; one database may have many */
  constructor(pool: PostgresPool<Client>, connection: string, options: PostgresStoreOptions = {}) {
    if (typeof connection !== 'string') throw new TypeError('connection must be a text')
    if (typeof pool?.connect !== 'function') throw new TypeError('pool must be a Pool of pg')
    this.#pool = pool
    this.#connection = connection
    this.#history = options.history ?? false
    this.#names = namesOf(options.prefix ?? '')
  }

  /** Database and name of the copy: see `CopyStore`. */
  get key(): readonly [object, string] {
    return [this.#pool, JSON.stringify([this.#names.copy, this.#connection])]
  }

  async cursor(list: ListName, copy: CopyName, signal?: AbortSignal): Promise<string | null> {
    return this.#read(async (session) => (await session.find(list, copy))?.cursor ?? null, signal)
  }

  async state(list: ListName, signal?: AbortSignal): Promise<CopyState | null> {
    return this.#read(async (session) => stateOf(await session.find(list, 'current')), signal)
  }

  async knownCopies(signal?: AbortSignal): Promise<KnownCopy[]> {
    return this.#read((session) => session.copies(), signal)
  }

  apply(
    changes: CopyChanges,
    onChanges?: OnChanges<Client, PostgresBound>,
    signal?: AbortSignal,
  ): Promise<CopyCounts> {
    const { list, copy, cursor, upserts, removed } = changes
    return this.#write(async (session) => {
      const id = await session.save(changes)
      const latest = latestOf(upserts, removed)
      if (latest.size === 0) return countsOf([])
      if (copy === 'next') {
        // Nobody reads it yet, so what it had before is not needed.
        await session.writeRows(id, latest)
        return countsOf([])
      }
      const done = await session.differing(id, latest)
      await session.writeRows(id, new Map(done.map((change) => [change.id, change.after])))
      if (this.#history) await session.keep(list, cursor, done)
      return this.#report(session, list, done, onChanges)
    }, signal)
  }

  count(list: ListName, copy: CopyName, signal?: AbortSignal): Promise<number> {
    return this.#read((session) => session.count(list, copy), signal)
  }

  swap(
    list: ListName,
    cursor: string,
    onChanges?: OnChanges<Client, PostgresBound>,
    signal?: AbortSignal,
  ): Promise<CopyCounts> {
    return this.#write(async (session) => {
      const next = await session.find(list, 'next')
      if (next?.cursor !== cursor) throw changed()
      const before = await session.find(list, 'current')
      // The app reads the new copy while it hears what differs from the old one.
      if (before !== undefined) await session.rename(before.id, 'before')
      await session.rename(next.id, 'current')
      const counts = { inserted: 0, updated: 0, removed: 0 }
      if (before === undefined && onChanges === undefined)
        counts.inserted = await session.count(list, 'current')
      else
        for await (const block of session.differences(next.id, before?.id ?? null)) {
          if (this.#history && before !== undefined) await session.keep(list, cursor, block)
          addCounts(counts, await this.#report(session, list, block, onChanges))
        }
      if (before !== undefined) await session.delete(before.id)
      return counts
    }, signal)
  }

  discard(list: ListName, signal?: AbortSignal): Promise<void> {
    return this.#write(async (session) => {
      const next = await session.find(list, 'next')
      if (next !== undefined) await session.delete(next.id)
    }, signal)
  }

  /**
   * Returns the time at which the service last read the institution, for the oldest list of the copy.
   * Returns null if the copy is not complete, or the time is not known.
   */
  refreshedAt(): Promise<Date | null> {
    return this.#read(async (session) => oldestRefresh(await session.refreshTimes()))
  }

  /** Iterates over the portfolio transactions of the copy, newest first. All are of one state. */
  portfolioTransactions(days: Days = {}): AsyncIterableIterator<PortfolioTransaction> {
    return this.#rows('portfolio_transactions', days)
  }

  /** Iterates over the account transactions of the copy, newest first. All are of one state. */
  accountTransactions(days: Days = {}): AsyncIterableIterator<AccountTransaction> {
    return this.#rows('account_transactions', days)
  }

  /** Iterates over the completed transfer orders of the copy. It does not keep their order. */
  transferOrders(): AsyncIterableIterator<AssetsTransferOrder> {
    return this.#rows('transfer_orders', {})
  }

  /**
   * Deletes the copy of this connection. The history stays, unless you ask for its end. With the option `history` of the store,
   * it gets each row of the copy as a removed one.
   */
  delete(options: DeleteOptions = {}): Promise<void> {
    return this.#write(async (session) => {
      if (this.#history && options.history !== true) await session.keepAll()
      for (const list of Object.keys(ID_FIELDS) as ListName[])
        for (const copy of ['current', 'next'] as const) {
          const found = await session.find(list, copy)
          if (found !== undefined) await session.delete(found.id)
        }
      if (options.history === true) await session.deleteHistory()
    })
  }

  async *#rows<List extends ListName>(
    list: List,
    { from, to }: Days,
    read: Read<Client> = (work) => this.#read(work),
  ): AsyncGenerator<ListRows[List], void> {
    const [first, last] = [dayOf('from', from) ?? null, dayOf('to', to) ?? null]
    const rows = await read((session) => session.rows(list, first, last))
    for (const row of rows) yield JSON.parse(row)
  }

  /** Returns what onChanges reads with. */
  #readerOf(session: Session<Client>): PostgresReader {
    const read: Read<Client> = async (work) => {
      expectOpen(session.state)
      return work(session)
    }
    return {
      portfolioTransactions: (days = {}) => this.#rows('portfolio_transactions', days, read),
      accountTransactions: (days = {}) => this.#rows('account_transactions', days, read),
      transferOrders: () => this.#rows('transfer_orders', {}, read),
      refreshedAt: () => read(async (session) => oldestRefresh(await session.refreshTimes())),
    }
  }

  /** Counts changes of the current copy, and tells the app. */
  async #report(
    session: Session<Client>,
    list: ListName,
    changes: Change[],
    onChanges: OnChanges<Client, PostgresBound> | undefined,
  ): Promise<CopyCounts> {
    if (onChanges !== undefined && changes.length > 0) {
      const { client, state } = session
      const told = withStore(rowChangesOf(list, changes), this.#readerOf(session))
      await insideTransaction(this.#pool, client, state, () => onChanges(told, client))
    }
    return countsOf(changes)
  }

  /** Makes the tables once. Two stores of a process, or two processes, may try it at the same time. */
  #prepare(signal: AbortSignal | undefined): Promise<void> {
    // Other calls may wait for it, so it does not end with this one.
    this.#ready ??= this.#use((session) => session.prepare(), undefined).catch((error) => {
      this.#ready = undefined
      throw error
    })
    return until(signal, this.#ready)
  }

  async #read<T>(work: (session: Session<Client>) => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#prepare(signal)
    return this.#use(work, signal)
  }

  async #write<T>(
    work: (session: Session<Client>) => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    await this.#prepare(signal)
    return this.#use((session) => {
      return session.transaction(async () => {
        await session.lock(this.#connection)
        return work(session)
      })
    }, signal)
  }

  /**
   * Uses a client of the pool, or inside onChanges that of its transaction. A client whose state is not known is closed: so
   * PostgreSQL undoes what a call has begun whose time is over, and its onChanges cannot write any more.
   */
  async #use<T>(
    work: (session: Session<Client>) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    const inside = transactionOf(this.#pool)
    if (inside !== undefined) {
      const client = inside.client as Client
      return work(new Session(client, this.#names, this.#connection, inside.transaction))
    }
    const client = await this.#connect(signal)
    const session = new Session(client, this.#names, this.#connection)
    // Without a listener, a connection that is lost between two statements would end the process.
    const ignore = () => {}
    client.on('error', ignore)
    let isBroken = true
    try {
      const result = await until(signal, work(session))
      isBroken = false
      return result
    } catch (error) {
      isBroken = session.isBroken || signal?.aborted === true
      const { code } = error as { code?: string }
      if (!CONFLICTS.includes(String(code))) throw error
      throw new CopyError('conflict', 'Another process writes the copy: synchronize again')
    } finally {
      session.state.isOpen = false
      if (!isBroken) client.off('error', ignore)
      client.release(isBroken)
    }
  }

  /** Waits for a client. One that comes after the end of the call goes back. */
  async #connect(signal: AbortSignal | undefined): Promise<Client> {
    const connecting = this.#pool.connect()
    try {
      return await until(signal, connecting)
    } catch (error) {
      const ignore = () => {}
      connecting.then((client) => client.release(), ignore)
      throw error
    }
  }
}

/** Reads with a session. */
type Read<Client extends PostgresClient> = <T>(
  work: (session: Session<Client>) => Promise<T>,
) => Promise<T>

function stateOf(copy: Copy | undefined): CopyState | null {
  if (copy === undefined || copy.totalItems === null) return null
  const { version, totalItems, refreshedAt } = copy
  return { version, totalItems, refreshedAt: refreshedAt === null ? null : new Date(refreshedAt) }
}

const changed = () =>
  new CopyError('conflict', 'Another process has changed the copy: synchronize again')

/** Statements of a store on one client. */
class Session<Client extends PostgresClient> {
  /** True if a transaction may still be open. */
  isBroken = false
  readonly state: StoreTransaction
  readonly client: Client
  readonly #names: StoreNames
  readonly #connection: string

  /** @param outer the transaction of the client, inside onChanges */
  constructor(client: Client, names: StoreNames, connection: string, outer?: StoreTransaction) {
    this.client = client
    this.#names = names
    this.#connection = connection
    this.state = outer ?? { isOpen: false }
  }

  async transaction<T>(work: () => Promise<T>): Promise<T> {
    if (this.state.isOpen)
      throw new CopyError('transaction_open', 'A store cannot write inside onChanges')
    // The app may have another default.
    await this.client.query('begin isolation level read committed read write')
    this.state.isOpen = true
    try {
      const result = await work()
      this.state.isOpen = false
      await this.client.query('commit')
      return result
    } catch (error) {
      this.state.isOpen = false
      await this.client.query('rollback').catch(() => {
        this.isBroken = true
      })
      throw error
    }
  }

  /** Waits for another process that writes a copy of this name. The time limit is not that of the app's statements. */
  async lock(name: string): Promise<void> {
    const key = JSON.stringify([this.#names.copy, name])
    // The lock is one of the database. Another app may have a copy of the same name in its own schema.
    await this.client.query(
      `with app as materialized (select current_setting('lock_timeout') as wait)
        select set_config('lock_timeout', $1, true),
          pg_advisory_xact_lock(hashtextextended(current_schema() || $2::text, 0)),
          set_config('lock_timeout', wait, true)
        from app`,
      [WAIT, key],
    )
  }

  async prepare(): Promise<void> {
    if ((await this.#found()).length > 0) return
    await this.transaction(async () => {
      await this.lock('')
      // Another process may have made the tables.
      if ((await this.#found()).length > 0) return
      for (const statement of postgresSchema(this.#names)) await this.client.query(statement)
    })
  }

  /**
   * Returns the names of the tables and views of the store that are made. Those in a later schema of the `search_path` are
   * of a store of another app, and this store makes its own.
   * @throws CopyError `name_taken` if others have their names, in any schema of the `search_path`
   */
  async #found(): Promise<string[]> {
    // A statement that reads no table may not see what another process has just made.
    const rest = `from unnest($1::text[]) as name join pg_class c on c.oid = to_regclass(name)
      join pg_namespace n on n.oid = c.relnamespace`
    const columns = `name, obj_description(c.oid, 'pg_class'), n.nspname = current_schema()`
    const found = (await this.#values(columns, rest, [allNames(this.#names)])) as [
      string,
      string | null,
      boolean,
    ][]
    const other = found.find(([, comment]) => comment !== MARK)
    if (other !== undefined) throw nameTaken(other[0], 'PostgresStore(pool, name')
    return found.filter(([, , isInFirstSchema]) => isInFirstSchema).map(([name]) => name)
  }

  async find(list: ListName, copy: CopyName): Promise<Copy | undefined> {
    const columns = `id, cursor, version, total_items, ${TIME}`
    const rest = `from ${this.#names.copy} where connection = $1 and list = $2 and copy = $3`
    const [found] = await this.#values(columns, rest, [this.#connection, list, copy])
    return found && copyOf(found)
  }

  async copies(): Promise<KnownCopy[]> {
    const { copy, row } = this.#names
    const columns = `list, copy, id, cursor, version, total_items, ${TIME},
      (select count(*) from ${row} where copy_id = c.id)`
    const rest = `from ${copy} c where connection = $1`
    const found = await this.#values(columns, rest, [this.#connection])
    return found.map(([list, name, ...values]) => {
      const copy = copyOf(values)
      const count = values.at(-1)
      return { list, copy: name, cursor: copy.cursor, state: stateOf(copy), count } as KnownCopy
    })
  }

  /**
   * Writes cursor and state of a copy, and returns its number.
   * @throws CopyError `conflict` if its cursor is another one
   */
  async save({ list, copy, since, cursor, state }: CopyChanges): Promise<number> {
    const { copy: table } = this.#names
    const statement = `insert into ${table} (connection, list, copy, cursor, version, total_items, refreshed_at)
        select $1, $2, $3, $4, $5, $6::bigint, $7::timestamptz
        where $8::text is null
          or exists (select from ${table} where connection = $1 and list = $2 and copy = $3)
        on conflict (connection, list, copy) do update set cursor = excluded.cursor,
          version = excluded.version, total_items = excluded.total_items,
          refreshed_at = coalesce(excluded.refreshed_at, ${table}.refreshed_at)
          where ${table}.cursor = $8
        returning json_build_array(id)::text as value`
    const values = [
      this.#connection,
      list,
      copy,
      cursor,
      state?.version ?? null,
      state?.totalItems ?? null,
      state?.refreshedAt?.toISOString() ?? null,
      since,
    ]
    const [found] = await this.#query(statement, values)
    if (found === undefined) throw changed()
    return found[0] as number
  }

  /** Returns the rows of a page that differ from those of a copy. */
  async differing(copyId: number, latest: Map<string, string | null>): Promise<Change[]> {
    const rest = `from unnest($2::text[], $3::jsonb[]) as n (id, row)
      left join ${this.#names.row} r on r.copy_id = $1 and r.id = n.id
      where r.row is distinct from n.row`
    const values = [copyId, [...latest.keys()], [...latest.values()]]
    const found = await this.#values('n.id, r.row::text, n.row::text', rest, values)
    const before = new Map(found.map(([id, row, after]) => [id as string, { row, after }]))
    // The order is that of the page.
    return [...latest.keys()].flatMap((id) => {
      const change = before.get(id)
      if (change === undefined) return []
      return [{ id, before: change.row as string | null, after: change.after as string | null }]
    })
  }

  /** Writes the last state of each row of a page; null for a removed row. */
  async writeRows(copyId: number, latest: Map<string, string | null>): Promise<void> {
    const removed = [...latest].filter(([, after]) => after === null)
    const written = [...latest].filter(([, after]) => after !== null)
    if (removed.length > 0)
      await this.client.query(
        `delete from ${this.#names.row} where copy_id = $1 and id = any($2::text[])`,
        [copyId, removed.map(([id]) => id)],
      )
    if (written.length > 0)
      await this.client.query(
        `insert into ${this.#names.row} (copy_id, id, row)
          select $1::bigint, n.id, n.row from unnest($2::text[], $3::jsonb[]) as n (id, row)
          on conflict (copy_id, id) do update set row = excluded.row`,
        [copyId, written.map(([id]) => id), written.map(([, after]) => after)],
      )
  }

  async count(list: ListName, copy: CopyName): Promise<number> {
    const rest = `from ${this.#names.row} where copy_id =
      (select id from ${this.#names.copy} where connection = $1 and list = $2 and copy = $3)`
    const [[count]] = (await this.#values('count(*)', rest, [this.#connection, list, copy])) as [
      [number],
    ]
    return count
  }

  /** Compares a copy with the one that it replaces, a block of rows at a time. */
  async *differences(next: number, before: number | null): AsyncGenerator<Change[], void> {
    const rest = `from (select * from ${this.#names.row} where copy_id = $1) n
      full join (select * from ${this.#names.row} where copy_id = $2) c on c.id = n.id
      where n.row is distinct from c.row and coalesce(n.id, c.id) > $3 collate "C"
      order by coalesce(n.id, c.id) limit ${BLOCK_ROWS}`
    const columns = 'coalesce(n.id, c.id), c.row::text, n.row::text'
    for (let last: string | undefined = ''; last !== undefined; ) {
      const found = (await this.#values(columns, rest, [next, before, last])) as [
        string,
        string | null,
        string | null,
      ][]
      const block: Change[] = found.map(([id, before, after]) => ({ id, before, after }))
      yield block
      last = block.at(-1)?.id
    }
  }

  /** Keeps what changes replace. */
  async keep(list: ListName, cursor: string, changes: Change[]): Promise<void> {
    if (changes.length === 0) return
    await this.client.query(
      `insert into ${this.#names.history} (connection, list, id, before, after, seen_at, cursor)
        select $1, $2, c.id, c.before, c.after, $3::timestamptz, $4
        from unnest($5::text[], $6::jsonb[], $7::jsonb[]) with ordinality as c (id, before, after, place)
        order by c.place`,
      [
        this.#connection,
        list,
        new Date().toISOString(),
        cursor,
        changes.map(({ id }) => id),
        changes.map(({ before }) => before),
        changes.map(({ after }) => after),
      ],
    )
  }

  /** Keeps all rows of the copy as removed ones. */
  async keepAll(): Promise<void> {
    const { history, copy, row } = this.#names
    const sql = `insert into ${history} (connection, list, id, before, after, seen_at, cursor)
      select c.connection, c.list, r.id, r.row, null, $1::timestamptz, c.cursor
      from ${copy} c join ${row} r on r.copy_id = c.id
      where c.connection = $2 and c.copy = 'current' order by c.list, r.id`
    await this.client.query(sql, [new Date().toISOString(), this.#connection])
  }

  async delete(copyId: number): Promise<void> {
    await this.client.query(`delete from ${this.#names.row} where copy_id = $1`, [copyId])
    await this.client.query(`delete from ${this.#names.copy} where id = $1`, [copyId])
  }

  async deleteHistory(): Promise<void> {
    const sql = `delete from ${this.#names.history} where connection = $1`
    await this.client.query(sql, [this.#connection])
  }

  async rename(copyId: number, copy: CopyName | 'before'): Promise<void> {
    const sql = `update ${this.#names.copy} set copy = $1 where id = $2`
    await this.client.query(sql, [copy, copyId])
  }

  async refreshTimes(): Promise<(string | null)[][]> {
    const rest = `from ${this.#names.copy} where connection = $1 and copy = 'current'`
    const found = await this.#values(`version, ${TIME}`, rest, [this.#connection])
    return found as (string | null)[][]
  }

  /** Returns the JSON of the rows of a list, newest first. */
  async rows(list: ListName, first: string | null, last: string | null): Promise<string[]> {
    const rest = `from ${this.#names.row} where copy_id =
        (select id from ${this.#names.copy} where connection = $1 and list = $2 and copy = 'current')
        and ($3::text is null or ${DAY} collate "C" >= $3) and ($4::text is null or ${DAY} collate "C" <= $4)
      order by ${DAY} collate "C" desc, ${HOUR} collate "C" desc nulls last, id desc`
    const values = [this.#connection, list, first, last]
    const found = await this.#values('row::text', rest, values)
    return (found as [string][]).map(([row]) => row)
  }

  #values(columns: string, rest = '', values: unknown[] = []): Promise<unknown[][]> {
    return this.#query(`select json_build_array(${columns})::text as value ${rest}`, values)
  }

  /** Returns the values of each row, by one JSON text: parsers of types that the app has set have no effect. */
  async #query(sql: string, values: unknown[]): Promise<unknown[][]> {
    const { rows } = await this.client.query(sql, values)
    return rows.map((row) => {
      const [text] = Array.isArray(row) ? row : Object.values(row as object)
      return JSON.parse(text)
    })
  }
}

function copyOf(values: unknown[]): Copy {
  const [id, cursor, version, totalItems, refreshedAt] = values as [
    number,
    string,
    string | null,
    number | null,
    string | null,
  ]
  return { id, cursor, version, totalItems, refreshedAt }
}
