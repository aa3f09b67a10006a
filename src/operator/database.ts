import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import {
  type FoundServer,
  findServers,
  historyOf,
  NewestPrimary,
  supersedes,
} from '../postgres/connect.ts'
import { isDenied, isSchemaBehind } from '../postgres/failures.ts'
import { missingFrom } from '../postgres/migrations.ts'
import { serverName, serverUrls } from '../postgres/server-urls.ts'
import type { Tables } from '../postgres/tables.ts'
import { SafeClient } from '../postgres/wire/safe-client.ts'

export interface OperatorDatabase {
  db: Kysely<Tables>
  pool: pg.Pool
  signal: AbortSignal
  /** Finds the primary again after a failover, or uses the password after its rotation. */
  findPrimary(): Promise<void>
}

const CONNECT_MS = 10_000
/** Time in which the sessions of an interrupted `refresh` finish their lines. */
const FINISH_MS = 10_000

interface CommandOptions {
  signal: AbortSignal
  /** Receives a sentence for each session that the command waits for. */
  notice: (sentence: string) => void
  /** Number of sessions with pipelines. An interrupted command first finishes their work. */
  sessions?: number | undefined
  /** True behind PgBouncer in transaction mode: each transaction has another session. */
  pooler: boolean
  /** Returns the URL with the newest user and password. */
  newestUrl?: (url: string) => string
}

/**
 * Opens the database at a URL, and closes its connections after `use`. So does an abort: PostgreSQL then rolls back the
 * transactions, except one whose commit was sent.
 */
export async function withDatabase<T>(
  url: string,
  options: CommandOptions,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const { signal, notice, sessions, newestUrl = () => url } = options
  const primary = new NewestPrimary()
  const opened = openPool(await primaryOf(url, primary), primary, options)
  const { pool, clients } = opened
  const findPrimary = async () => {
    pool.options.connectionString = await primaryOf(newestUrl(url), primary)
  }
  let closing: NodeJS.Timeout | undefined
  const onAbort = () => {
    const close = () => clients.forEach((client) => void client.interrupt())
    closing = setTimeout(close, sessions === undefined ? 0 : FINISH_MS)
  }
  signal.addEventListener('abort', onAbort)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const report = waitReporter(opened, db, notice)
  const checks = setInterval(() => {
    // The processes behind a pooler are unknown.
    if (!options.pooler) void report()
    void followPrimary(opened, newestUrl(url), primary, notice)
  }, 1_000)
  try {
    signal.throwIfAborted()
    return await use({ db, pool, signal, findPrimary })
  } finally {
    signal.removeEventListener('abort', onAbort)
    clearInterval(checks)
    clearTimeout(closing)
    await db.destroy()
  }
}

const APPLICATION = 'investment-data-operator'

/** PostgreSQL ends the session of a lost client, and releases its locks, within about a minute. */
const SESSION_SETTINGS = `
  set idle_in_transaction_session_timeout = '1min';
  set tcp_keepalives_idle = 30;
  set tcp_keepalives_interval = 10;
  set tcp_keepalives_count = 3`

class CommandClient extends SafeClient {
  /** Process of its session in PostgreSQL. */
  declare readonly processID: number | null
  #commit: Promise<unknown> | undefined

  // biome-ignore lint/suspicious/noExplicitAny: pg has nine signatures.
  override query(...args: [any]): any {
    const result = super.query(...args)
    const [{ text = args[0] }] = args
    if (text === 'commit') this.#commit = Promise.resolve(result)
    return result
  }

  /** Closes the connection. A commit in progress ends first: its result would otherwise be unknown. */
  async interrupt(): Promise<void> {
    await this.#commit?.catch(() => {})
    this.destroy()
  }
}

type OpenedPool = ReturnType<typeof openPool>

/** @returns the pool and its open connections */
function openPool(
  connectionString: string,
  primary: NewestPrimary,
  { signal, sessions, pooler }: CommandOptions,
) {
  const clients = new Set<CommandClient>()
  const pool = new pg.Pool({
    Client: CommandClient,
    connectionString,
    // One session runs the command, another one finds the sessions that it waits for.
    max: 2 + (sessions ?? 1),
    // PgBouncer 1.18 mixes up the messages of pipelined queries.
    pipeline: sessions !== undefined && !pooler,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: APPLICATION,
    onConnect: async (connected) => {
      signal.throwIfAborted()
      const client = connected as CommandClient
      clients.add(client)
      if (pooler) return
      // A name or an address in front of several servers may lead to another one each time.
      const [history] = await historyOf(client)
      const url = String(pool.options.connectionString)
      if (history) primary.use({ url, cluster: '', timeline: 0, started: '', ...history })
      await client.query(SESSION_SETTINGS)
      // PostgreSQL rejects this setting on Windows.
      await client.query(`set client_connection_check_interval = '1s'`).catch(() => {})
    },
  })
  // If a connection breaks, the next statement fails. Without a listener, the process would end.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  pool.on('remove', (client) => clients.delete(client as pg.ClientBase as CommandClient))
  return { pool, clients }
}

/** Sessions that hold a lock for which one of the sessions $1 has waited for a second. */
const BLOCKERS = `
  select blocker.pid, blocker.application_name as name, blocker.xact_start as since
  from pg_stat_activity own, unnest(pg_blocking_pids(own.pid)) id
  join pg_stat_activity blocker on blocker.pid = id
  where own.pid = any($1) and own.wait_event_type = 'Lock'
    and own.query_start < now() - interval '1 second'`

/** The same for a lock on a worker of Citus. The coordinator then waits for the worker, not for a lock. */
const BLOCKERS_ON_WORKERS = `
  select blocker.pid, blocker.application_name as name, blocker.xact_start as since
  from pg_stat_activity own
  join citus_lock_waits on waiting_gpid = citus_calculate_gpid(citus_coordinator_nodeid(), own.pid)
  join citus_stat_activity blocker on global_pid = blocking_gpid and not is_worker_query
  where own.pid = any($1) and own.query_start < now() - interval '1 second'`

export async function isCitus(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql`select from pg_extension where extname = 'citus'`.execute(db)
  return rows.length > 0
}

interface Blocker {
  pid: number
  name: string
  since: Date | null
}

/** Returns a function that reports each session that the pool's sessions wait for, once. */
function waitReporter(
  { pool, clients }: OpenedPool,
  db: Kysely<Tables>,
  notice: (sentence: string) => void,
) {
  const reported = new Set<number>()
  const blockers = async () => {
    const own = [Array.from(clients, ({ processID }) => processID)]
    const { rows } = await pool.query<Blocker>(BLOCKERS, own)
    if (rows.length > 0 || !(await isCitus(db))) return rows
    return (await pool.query<Blocker>(BLOCKERS_ON_WORKERS, own)).rows
  }
  return async () => {
    for (const { pid, name, since } of await blockers().catch(() => [])) {
      if (reported.has(pid)) continue
      reported.add(pid)
      const session =
        name === APPLICATION
          ? 'another command of the operator'
          : `a session of ${name || 'an unnamed program'}`
      const start = since ? `, in a transaction since ${since.toISOString()}` : ''
      notice(`Waiting for ${session} (process ${pid} of PostgreSQL)${start}.`)
    }
  }
}

/**
 * Moves to a server that was promoted while the one in use is alive. Its sessions end, so that `refresh` repeats the
 * lines in progress on the new primary.
 */
async function followPrimary(
  { pool, clients }: OpenedPool,
  url: string,
  primary: NewestPrimary,
  notice: (sentence: string) => void,
): Promise<void> {
  const urls = serverUrls(url)
  const { server: used } = primary
  if (urls.length === 1 || used === undefined || pool.ending) return
  const [newest] = await findServers(LIMITS, urls, 500).catch(() => [])
  if (newest === undefined || primary.server !== used || !supersedes(newest, used)) return
  primary.use(newest)
  pool.options.connectionString = newest.url
  notice(
    `${serverName(newest.url)} was promoted and replaces ${serverName(used.url)}. What was written in the last two ` +
      `seconds may be on the old primary alone: repeat it.`,
  )
  for (const client of clients) client.destroy()
}

const LIMITS = { waitMs: CONNECT_MS, statementTimeoutMs: CONNECT_MS, pooler: false }

/**
 * Returns the URL of the newest primary, if a URL names several hosts.
 * @throws ServerFailed if only primaries respond that a newer one has superseded
 * @throws OperatorError if none of them accepts connections as a primary, or two have different histories
 */
async function primaryOf(url: string, primary: NewestPrimary): Promise<string> {
  const urls = serverUrls(url)
  if (urls.length === 1) return url
  const servers = await findServers(LIMITS, urls, CONNECT_MS).catch(
    ({ errors }: AggregateError) => {
      const reasons = errors.map(({ message }: Error) => message).join('; ')
      throw new OperatorError(`No server in DATABASE_URL is a primary that responds (${reasons}).`)
    },
  )
  const [newest, ...others] = servers as [FoundServer, ...FoundServer[]]
  const isRival = (other: FoundServer) =>
    other.started !== newest.started && other.timeline > 0 && !supersedes(newest, other)
  const rival = others.find(isRival)
  if (rival === undefined) {
    primary.use(newest)
    return newest.url
  }
  throw new OperatorError(
    `${serverName(newest.url)} and ${serverName(rival.url)} in DATABASE_URL are both primaries, and neither ` +
      'replaced the other: DATABASE_URL must name only the one that is in use.',
  )
}

/** @throws OperatorError when migrations are missing */
export async function requireSchema({ db }: OperatorDatabase): Promise<void> {
  const read = db.withSchema('public').selectFrom('kysely_migration').select('name').execute()
  const applied = await read.catch((error: unknown) => {
    if (!isDenied(error) && isSchemaBehind(error)) return []
    throw error
  })
  const missing = missingFrom(new Set(applied.map(({ name }) => name)))
  if (missing.length === 0) return
  throw new OperatorError(
    `The schema of the database is outdated (${missing.join(', ')} not applied): ` +
      'run `npm run operator -- migrate` first.',
  )
}

/** Finds an app by its name. @throws OperatorError when the app does not exist */
export async function findApp(db: Kysely<Tables>, name: string) {
  const app = db.selectFrom('app').select(['id', 'name']).where('name', '=', name)
  return await app.executeTakeFirstOrThrow(() => missingApp(name))
}

export function missingApp(name: string): OperatorError {
  return new OperatorError(`There is no app ${name}: \`app list\` shows all apps.`)
}
