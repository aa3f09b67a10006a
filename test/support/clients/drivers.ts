import { type ChildProcess, spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { inspect } from 'node:util'
import pg from 'pg'
import type { Test } from 'tap'
import {
  type AccountTransaction,
  type Attempt,
  type Changes,
  CopyError,
  checkPositions,
  chronological,
  type Decimal,
  InvestmentData,
  InvestmentDataError,
  type PortfolioTransaction,
  type PositionsByDayOptions,
  type PostgresClient,
  type PostgresReader,
  PostgresStore,
  ProblemError,
  positions,
  positionsByDay,
  type RowChanges,
  type SqliteDatabase,
  type SqliteReader,
  SqliteStore,
  type SyncedCopies,
  type SyncResult,
  sum,
} from '../../../clients/typescript/src/index.ts'
import { PYTHON, pythonEnvironment } from './python.ts'

/** Parameters of a call, the same for all clients. */
export interface Access {
  url: string
  /** Token of the app. */
  token: string
  /** Token of the connection. */
  connection: string
  pageSize?: number
  timeoutMs?: number
  callTimeoutMs?: number
  attempts?: number
  baseDelayMs?: number
  maxDelayMs?: number
  traceId?: string
  /** File of a trusted certificate, for Python. Node.js trusts those of the process. */
  certificate?: string
}

export type ListName = 'portfolio' | 'account'

/** A row as the client returns it, with decimals as text. */
export type Row = Record<string, unknown>

export interface Synchronized {
  pages: Changes<Row>[]
  result: SyncResult
}

/** Error of a client. `shown` is all that a report of the error may show. */
export interface ClientError {
  name: string
  /** Names of its class and of all parents. */
  names: string[]
  message: string
  code?: string
  status?: number
  headers?: Record<string, string>
  retryAfterMs?: number
  requestId?: string
  traceId?: string
  attempts?: number
  errors?: unknown[]
  shown: string
}

interface Range {
  from?: string
  to?: string
  limit?: number
  /** Names of investments, for positions. */
  names?: Record<string, string>
}

/** Deletes a copy, or the copy with its history. A store with a history keeps the rows. */
export type Deletion = 'delete' | 'delete with history' | 'delete, and keep the rows'

/** What a copy is asked for without the service. */
export type Reading =
  | ListName
  | 'orders'
  | 'chronological'
  | 'checks'
  | 'positions'
  | 'positionsByDay'
  | Deletion

export interface CopyOptions {
  history?: boolean
  /** Pages of the file at which SQLite reports a full disk. */
  pages?: number
  /** Call of `onChanges` that ends the process, or throws: 1 for the first. */
  killAt?: number
  failAt?: number
  /** Time that the clock of the program shows. */
  now?: string
  /** What the app does in `onChanges`. */
  app?: App
  /** Connections of the pool. */
  poolSize?: number
}

/**
 * What an app does in `onChanges`:
 * - `tables`: it writes positions and cash of the new state into its own tables.
 * - `outer`: it does so with the store of syncTransactions() instead of the one that it gets.
 * - `outer write`, `outer sync`: it deletes or synchronizes the copy.
 * - `late`: it uses the store that it gets after the transaction.
 * - `hang`: it never ends. A program that blocks waits for a statement, or until the time of the call is over.
 */
export type App = 'tables' | 'outer' | 'outer write' | 'outer sync' | 'late' | 'hang'

/** Result of a synchronization of a store. */
export interface Copied {
  result: SyncedCopies
  /** Arguments of `onChanges`, with `previous` as an object. */
  told: (Omit<RowChanges, 'upserts' | 'previous'> & {
    upserts: Row[]
    previous: Record<string, Row>
  })[]
  /** Time that the store has. */
  refreshedAt: string | null
}

/** Rows of a list, and what the client says of all of them. */
export interface Listed {
  rows: Row[]
  facts: { totalItems: number | null; refreshedAt: string | null }
}

/** Calls a client. A failed call rejects: see failureOf(). */
export interface Driver {
  list(access: Access, list: ListName, range?: Range): Promise<Row[]>
  listWithFacts(access: Access, list: ListName, range?: Range): Promise<Listed>
  exported(access: Access, list: ListName, range?: Range): Promise<Row[]>
  csv(access: Access, list: ListName): Promise<string>
  orders(access: Access): Promise<Row[]>
  sync(access: Access, list: ListName, cursor?: string, count?: number): Promise<Synchronized>
  /** Brings the copies in a file of SQLite up to date. */
  copy(access: Access, file: string, name: string, options?: CopyOptions): Promise<Copied>
  /** Reads a copy, or deletes it. */
  read(file: string, name: string, what: Reading, range?: Range): Promise<Row[]>
  /** What the hooks of the last call have received. */
  seen: { attempts: Partial<Attempt>[]; warnings: string[] }
}

export class DriverError extends Error {
  readonly error: ClientError
  constructor(error: ClientError) {
    super(error.shown)
    this.error = error
  }
}

/** Returns the error of a call that fails. */
export async function failureOf(call: Promise<unknown>): Promise<ClientError> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error instanceof DriverError) return error.error
  throw error ?? new Error('the call did not fail')
}

const defaults = {
  pageSize: 1000,
  timeoutMs: 20_000,
  attempts: 6,
  baseDelayMs: 1,
  maxDelayMs: 60_000,
}

type Drivers = Record<'TypeScript' | 'Python' | 'Python asyncio', Driver>

const allClients = process.env.CLIENTS === 'all'

/** Returns the clients by name: that of TypeScript, and with CLIENTS=all those of Python, which need Python. */
export function startDrivers(t: Test): { TypeScript: Driver } & Partial<Drivers> {
  const TypeScript = typescript()
  if (!allClients) return { TypeScript }
  return {
    TypeScript,
    Python: startPython(t),
    'Python asyncio': startPython(t, '--asyncio'),
  }
}

/** Databases of a store. */
export type Database = 'SQLite' | 'PostgreSQL'

/** A client with one library of a database. */
export interface StoreDriver {
  /** One that the tests share. */
  here: Driver
  /** Starts a new process of it, which may be killed. */
  start(t: Test): Driver
}

/** Returns each client with each library of the database that its stores accept: one without CLIENTS=all. */
export function startStoreDrivers(
  t: Test,
  database: Database,
): { TypeScript: StoreDriver } & Record<string, StoreDriver> {
  const TypeScript = { here: typescript(), start: (t: Test) => startTypescript(t) }
  if (!allClients) return { TypeScript }
  const pythonOf = (...args: string[]) => {
    const start = (t: Test) => startPython(t, ...args)
    return { here: start(t), start }
  }
  const all = { TypeScript, Python: pythonOf(), 'Python asyncio': pythonOf('--asyncio') }
  if (database === 'SQLite') {
    // Not in this process, because two libraries of SQLite in one process do not see each other's locks.
    const start = (t: Test) => startTypescript(t, '--better-sqlite3')
    return { ...all, 'TypeScript with better-sqlite3': { here: start(t), start } }
  }
  return {
    ...all,
    'Python with psycopg_pool': pythonOf('--pool'),
    'Python asyncio with psycopg_pool': pythonOf('--asyncio', '--pool'),
  }
}

/** Returns a Date for which it is always the same time. */
function dateAt(now: string): DateConstructor {
  const RealDate = globalThis.Date
  return class extends RealDate {
    constructor(...values: [] | [string | number]) {
      super(...((values.length === 0 ? [now] : values) as [string]))
    }
    static override now = () => RealDate.parse(now)
  } as DateConstructor
}

/** Opens a file of SQLite. */
type OpenSqlite = (file: string) => SqliteDatabase & { close(): void }

/** A database of better-sqlite3, as far as the tests use it. */
interface BetterSqlite extends SqliteDatabase {
  close(): void
  defaultSafeIntegers(toggle: boolean): this
}

/** Opens a file with better-sqlite3, which is a package of `test/clients`. */
export function openBetterSqlite(): (file: string) => BetterSqlite {
  const Database = createRequire(resolve('test/clients/package.json'))('better-sqlite3')
  return (file) => new Database(file)
}

const openNodeSqlite: OpenSqlite = (file) => new DatabaseSync(file)

export function typescript(open: OpenSqlite = openNodeSqlite): Driver {
  const driver: Driver = {
    seen: { attempts: [], warnings: [] },
    list: (access, list, range) =>
      run(access, (connection) =>
        list === 'portfolio'
          ? collect(connection.portfolioTransactions(range))
          : collect(connection.accountTransactions(range)),
      ),
    listWithFacts: (access, list, range) =>
      run(access, async (connection) => {
        const rows =
          list === 'portfolio'
            ? connection.portfolioTransactions(range)
            : connection.accountTransactions(range)
        const found = await collect(rows)
        const refreshedAt = rows.refreshedAt?.toISOString() ?? null
        return { rows: found, facts: { totalItems: rows.totalItems, refreshedAt } }
      }),
    exported: (access, list, range) =>
      run(access, (connection) =>
        list === 'portfolio'
          ? collect(connection.exportPortfolioTransactions(range))
          : collect(connection.exportAccountTransactions(range)),
      ),
    csv: (access, list) =>
      run(access, async (connection) => {
        const parts =
          list === 'portfolio'
            ? connection.exportPortfolioTransactionsCsv()
            : connection.exportAccountTransactionsCsv()
        let text = ''
        for await (const part of parts) text += Buffer.from(part).toString('latin1')
        return Buffer.from(text, 'latin1').toString()
      }),
    orders: (access) =>
      run(access, async (connection) =>
        (await connection.transferOrders()).map((order) => ({ ...order })),
      ),
    sync: (access, list, cursor, count) =>
      run(access, async (connection) => {
        const pages: Changes<Row>[] = []
        const apply = ({ upserts, ...rest }: Changes<object>) => {
          pages.push({ upserts: upserts.map((row) => ({ ...row })), ...rest })
        }
        const options = { cursor, apply, ...(count === undefined ? {} : { count: () => count }) }
        const result =
          list === 'portfolio'
            ? await connection.syncPortfolioTransactions(options)
            : await connection.syncAccountTransactions(options)
        return { pages, result }
      }),
    copy: (access, file, name, options = {}) =>
      run(access, async (connection) => {
        const { history = false, pages, killAt, failAt, now, app, poolSize } = options
        const told: Copied['told'] = []
        const onChanges = ({ upserts, previous, ...changes }: RowChanges) => {
          const rows = upserts.map((row) => ({ ...row }))
          told.push({ ...changes, upserts: rows, previous: Object.fromEntries(previous) })
          if (told.length === killAt) process.kill(process.pid, 'SIGKILL')
          if (told.length === failAt) throw new Error('an error of the app')
        }
        if (isPostgres(file))
          return withPool(
            file,
            async (pool) => {
              const store = new PostgresStore(pool, name, { history })
              if (app !== undefined) for (const table of OWN_TABLES) await pool.query(table)
              const kept: PostgresReader[] = []
              const result = await connection.syncTransactions(store, {
                onChanges: async (changes, client) => {
                  kept.push(changes.store)
                  if (app === 'tables') await writeOwnTables(client, name, changes.store)
                  if (app === 'outer') await writeOwnTables(client, name, store)
                  if (app === 'outer write') await store.delete()
                  if (app === 'outer sync') await connection.syncTransactions(store)
                  if (app === 'hang') await new Promise(() => {})
                  // It is a part of the transaction, and asynchronous.
                  await client.query('create temporary table if not exists told (list text)')
                  await client.query('insert into told values ($1)', [changes.list])
                  onChanges(changes)
                },
              })
              if (app === 'late') await positions(kept[0] as PostgresReader)
              return {
                result,
                told,
                refreshedAt: (await store.refreshedAt())?.toISOString() ?? null,
              }
            },
            poolSize,
          )
        const db = open(file)
        const RealDate = globalThis.Date
        if (now !== undefined) globalThis.Date = dateAt(now)
        try {
          const store = new SqliteStore(db, name, { history })
          if (pages !== undefined) db.exec(`pragma max_page_count = ${pages}`)
          if (app !== undefined) for (const table of OWN_TABLES) db.exec(table)
          const kept: SqliteReader[] = []
          const result = await connection.syncTransactions(store, {
            onChanges: (changes) => {
              kept.push(changes.store)
              if (app === 'tables') writeOwnRows(db, name, changes.store)
              if (app === 'outer') writeOwnRows(db, name, store)
              if (app === 'outer write') store.delete()
              if (app === 'hang') block(Number(access.callTimeoutMs))
              onChanges(changes)
            },
          })
          if (app === 'late') positions(kept[0] as SqliteReader)
          return { result, told, refreshedAt: store.refreshedAt()?.toISOString() ?? null }
        } finally {
          globalThis.Date = RealDate
          db.close()
        }
      }),
    read: async (file, name, what, range) => {
      if (isPostgres(file)) return withPool(file, (pool) => readPostgres(pool, name, what, range))
      const db = open(file)
      try {
        const store = new SqliteStore(db, name, { history: what === KEEP })
        if (what === 'delete' || what === 'delete with history' || what === KEEP) {
          store.delete({ history: what === 'delete with history' })
          return []
        }
        const readings = {
          portfolio: () => store.portfolioTransactions(range),
          account: () => store.accountTransactions(range),
          orders: () => store.transferOrders(),
          chronological: () => chronological(store.portfolioTransactions()),
          checks: () => checkPositions(store),
          positions: () => positions(store, { at: range?.to, names: range?.names }),
          positionsByDay: () => positionsByDay(store, daysOf(range)),
        }
        return [...readings[what]()].map((row) => ({ ...row }))
      } finally {
        db.close()
      }
    },
  }
  return driver

  async function run<T>(
    { url: baseUrl, token, connection, ...options }: Access,
    call: (connection: ReturnType<InvestmentData['connection']>) => Promise<T>,
  ): Promise<T> {
    const {
      attempts,
      baseDelayMs,
      maxDelayMs,
      traceId,
      certificate: _,
      ...limits
    } = {
      ...defaults,
      ...options,
    }
    const retry = { attempts, baseDelayMs, maxDelayMs }
    const seen: Driver['seen'] = { attempts: [], warnings: [] }
    driver.seen = seen
    try {
      const onAttempt = (attempt: Attempt) => seen.attempts.push(attempt)
      const onWarning = (message: string) => seen.warnings.push(message)
      const hooks = { onAttempt, onWarning }
      const api = new InvestmentData({ baseUrl, token, retry, ...limits, ...hooks })
      return await call(api.connection(connection, traceId === undefined ? {} : { traceId }))
    } catch (error) {
      throw new DriverError(reportOf(error as Error))
    }
  }
}

const KEEP = 'delete, and keep the rows'
const isPostgres = (file: string) => /^postgres(ql)?:/.test(file)

/** Tables of an app: what it derives from the copy. */
const OWN_TABLES = [
  `create table if not exists own_position (connection text, portfolio text, investment text, shares text)`,
  `create table if not exists own_cash (connection text, currency text, total text)`,
]

function writeOwnRows(db: SqliteDatabase, name: string, store: SqliteReader): void {
  for (const table of ['own_position', 'own_cash'])
    db.prepare(`delete from ${table} where connection = ?`).run(name)
  const position = db.prepare('insert into own_position values (?, ?, ?, ?)')
  for (const { portfolioId, investment, shares } of positions(store))
    position.run(name, portfolioId, investment, shares)
  const cash = db.prepare('insert into own_cash values (?, ?, ?)')
  for (const [currency, total] of cashOf([...store.accountTransactions()]))
    cash.run(name, currency, total)
}

async function writeOwnTables(
  client: PostgresClient,
  name: string,
  store: PostgresReader,
): Promise<void> {
  for (const table of ['own_position', 'own_cash'])
    await client.query(`delete from ${table} where connection = $1`, [name])
  for (const { portfolioId, investment, shares } of await positions(store)) {
    const values = [name, portfolioId, investment, shares]
    await client.query('insert into own_position values ($1, $2, $3, $4)', values)
  }
  const rows: AccountTransaction[] = []
  for await (const row of store.accountTransactions()) rows.push(row)
  for (const [currency, total] of cashOf(rows))
    await client.query('insert into own_cash values ($1, $2, $3)', [name, currency, total])
}

/** Blocks the process. */
function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** Returns the sum of each currency. */
export function cashOf(rows: Pick<AccountTransaction, 'amount' | 'currency'>[]) {
  const amounts = new Map<string, Decimal[]>()
  for (const { amount, currency } of rows) {
    const own = amounts.get(currency ?? '') ?? []
    amounts.set(currency ?? '', amount === null ? own : [...own, amount])
  }
  return [...amounts].map(([currency, texts]) => [currency, sum(texts)] as const)
}

async function withPool<T>(url: string, work: (pool: pg.Pool) => Promise<T>, max = 10): Promise<T> {
  const pool = new pg.Pool({ connectionString: url, max })
  // Without a listener, the end of an idle connection would end the process.
  pool.on('error', () => {})
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}

async function readPostgres(
  pool: pg.Pool,
  name: string,
  what: Reading,
  range: Range | undefined,
): Promise<Row[]> {
  const store = new PostgresStore(pool, name, { history: what === KEEP })
  if (what === 'portfolio') return collect(store.portfolioTransactions(range))
  if (what === 'account') return collect(store.accountTransactions(range))
  if (what === 'orders') return collect(store.transferOrders())
  if (what === 'chronological') {
    const rows: PortfolioTransaction[] = []
    for await (const row of store.portfolioTransactions()) rows.push(row)
    return chronological(rows).map((row) => ({ ...row }))
  }
  if (what === 'checks') return (await checkPositions(store)).map((row) => ({ ...row }))
  if (what === 'positions')
    return (await positions(store, { at: range?.to, names: range?.names })).map((row) => ({
      ...row,
    }))
  if (what === 'positionsByDay')
    return (await positionsByDay(store, daysOf(range))).map((day) => ({ ...day }))
  await store.delete({ history: what === 'delete with history' })
  return []
}

function daysOf({ from = '', to = '', names }: Range = {}): PositionsByDayOptions {
  return names === undefined ? { from, to } : { from, to, names }
}

async function collect(rows: AsyncIterable<object>): Promise<Row[]> {
  const found: Row[] = []
  for await (const row of rows) found.push({ ...row })
  return found
}

function reportOf(error: Error): ClientError {
  const { name, message } = error
  const names: string[] = []
  for (let each = Object.getPrototypeOf(error); each; each = Object.getPrototypeOf(each))
    names.push(each.constructor.name)
  const found: ClientError = {
    name,
    names,
    message,
    shown: inspect(error, { depth: 10, showHidden: true }),
  }
  if (error instanceof CopyError) found.code = error.code
  if (error instanceof InvestmentDataError) {
    const { code, status, headers, retryAfterMs, requestId, traceId, attempts } = error
    const facts = { code, status, retryAfterMs, requestId, traceId, attempts }
    const known = Object.entries(facts).filter(([, value]) => value !== undefined)
    Object.assign(found, Object.fromEntries(known), { headers: Object.fromEntries(headers) })
  }
  if (error instanceof ProblemError) Object.assign(found, { errors: error.errors })
  return found
}

const startPython = (t: Test, ...args: string[]) =>
  startProcess(t, PYTHON, `${import.meta.dirname}/driver.py`, ...args)

function startTypescript(t: Test, ...args: string[]): Driver {
  const program = `${import.meta.dirname}/driver.ts`
  const options = ['--disable-warning=ExperimentalWarning']
  return startProcess(t, process.execPath, ...options, program, ...args)
}

/** Starts a process that runs one call after the other. */
function startProcess(t: Test, command: string, ...args: string[]): Driver {
  const env = command === PYTHON ? pythonEnvironment : process.env
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
  // A call reports that the process is missing.
  child.on('error', () => {})
  child.stdin.on('error', () => {})
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  let queue: Promise<unknown> = Promise.resolve()
  const call = <T>(method: string, access: Access, parameters: object): Promise<T> => {
    const result = queue.then(async () => {
      const line = JSON.stringify({ ...defaults, ...access, ...parameters, method })
      const response = await responseOf<T>(child, lines, line)
      driver.seen = response
      if (response.error !== undefined) throw new DriverError(response.error)
      return response.value
    })
    queue = result.catch(() => {})
    return result
  }
  const rows = (
    access: Access,
    list: ListName,
    prefix: string,
    suffix: string,
    range: Range = {},
  ) => call<Row[]>('rows', access, { list, prefix, suffix, ...range })
  const driver: Driver = {
    seen: { attempts: [], warnings: [] },
    list: (access, list, range) => rows(access, list, '', '', range),
    listWithFacts: (access, list, range) => call('rows_with_facts', access, { list, ...range }),
    exported: (access, list, range) => rows(access, list, 'export_', '', range),
    csv: (access, list) => call('rows', access, { list, prefix: 'export_', suffix: '_csv' }),
    orders: (access) => call('orders', access, {}),
    sync: (access, list, cursor, count) => call('sync', access, { list, cursor, count }),
    copy: (access, file, name, options) => call('copy', access, { file, name, ...options }),
    read: (file, name, what, range) =>
      call<Row[] | null>('read', NO_ACCESS, { file, name, list: what, ...range }).then(
        (rows) => rows ?? [],
      ),
  }
  return driver
}

const NO_ACCESS: Access = { url: 'http://127.0.0.1:1', token: 'none', connection: 'none' }

interface ProcessResponse<T> {
  value: T
  error?: ClientError
  attempts: Partial<Attempt>[]
  warnings: string[]
}

async function responseOf<T>(child: ChildProcess, lines: AsyncIterator<string>, line: string) {
  child.stdin?.write(`${line}\n`)
  const { value, done } = await lines.next()
  if (done) throw new Error(`${child.spawnargs[0]} is not installed, or it has ended`)
  return JSON.parse(value) as ProcessResponse<T>
}
