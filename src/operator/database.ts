import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { missingFrom } from '../../migrations/index.ts'
import { OperatorError } from '../operator-error.ts'
import {
  type FoundServer,
  findServers,
  historyOf,
  NewestPrimary,
  supersedes,
} from '../postgres/hosts.ts'
import { serverName, serverUrls } from '../postgres/server-urls.ts'
import type { Tables } from '../postgres/tables.ts'
import { SafeClient } from '../postgres/wire/safe-client.ts'

export interface OperatorDatabase {
  db: Kysely<Tables>
  pool: pg.Pool
  signal: AbortSignal
}

interface CommandOptions {
  signal: AbortSignal
  /** Receives a sentence for each session that the command waits for. */
  notice: (sentence: string) => void
  /** Number of sessions with pipelines. An interrupted command first finishes their work. */
  sessions?: number | undefined
  /** True behind PgBouncer in transaction mode: each transaction has another session. */
  pooler: boolean
}

const CONNECT_MS = 10_000
/** Time in which the sessions of an interrupted `refresh` finish their lines. */
const FINISH_MS = 10_000

/**
 * Opens the database at a URL, and closes its connections after `use`. So does an abort: PostgreSQL then rolls back the
 * transactions, except one whose commit was sent.
 */
export async function withDatabase<T>(
  url: string,
  options: CommandOptions,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const { signal, notice, sessions, pooler } = options
  const opened = await openPool(url, options)
  const { pool, clients } = opened
  const report = blockerReport(opened, notice)
  const checks = [
    // The processes behind a pooler are unknown.
    setInterval(() => pooler || report().catch(() => {}), 200),
    setInterval(() => followPrimary(url, opened, notice).catch(() => {}), 1_000),
  ]
  const onAbort = () => {
    const close = () => clients.forEach((client) => void client.interrupt())
    checks.push(setTimeout(close, sessions === undefined ? 0 : FINISH_MS))
  }
  signal.addEventListener('abort', onAbort)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  try {
    signal.throwIfAborted()
    return await use({ db, pool, signal })
  } finally {
    signal.removeEventListener('abort', onAbort)
    checks.forEach(clearInterval)
    await db.destroy()
  }
}

const APPLICATION = 'investment-data-operator'

/**
 * PostgreSQL notices a closed connection within a second, and a lost one within about a minute. It then rolls back. It
 * rejects the first setting on Windows.
 */
const SESSION_SETTINGS = `
  set client_connection_check_interval = '1s';
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

type OpenedPool = Awaited<ReturnType<typeof openPool>>

/** @returns the pool, its open connections and the server that it uses */
async function openPool(urls: string, { signal, sessions, pooler }: CommandOptions) {
  const clients = new Set<CommandClient>()
  const primary = new NewestPrimary()
  const pool = new pg.Pool({
    Client: CommandClient,
    connectionString: await primaryOf(urls, primary),
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
      // If a connection breaks, the next statement fails. Without a listener, the process would end.
      client.on('error', () => {})
      clients.add(client)
      client.once('end', () => clients.delete(client))
      if (pooler) return
      // A name or an address in front of several servers may lead to another one each time.
      primary.use(await historyOf(client, String(pool.options.connectionString)))
      await client.query(SESSION_SETTINGS).catch(() => {})
    },
  })
  pool.on('error', () => {})
  return { pool, clients, primary }
}

/**
 * Sessions that hold a lock for which one of the sessions $1 waits, except $2. A migration waits for half a second: it
 * must be found before.
 */
const BLOCKERS = `
  select distinct blocker.pid, format('Waiting for %s (process %s of PostgreSQL)%s.',
    case blocker.application_name when '${APPLICATION}' then 'another command of the operator'
      else 'a session of ' || coalesce(nullif(blocker.application_name, ''), 'an unnamed program') end,
    blocker.pid, ', in a transaction since '
      || to_char(blocker.xact_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')) as sentence
  from pg_stat_activity own, unnest(pg_blocking_pids(own.pid)) id
  join pg_stat_activity blocker on blocker.pid = id
  where own.pid = any($1) and own.wait_event_type = 'Lock' and blocker.pid <> all($2)
    and own.query_start < now() - interval '200 ms'`

/** Returns a function that reports each session that the clients wait for, once. */
function blockerReport({ pool, clients }: OpenedPool, notice: (sentence: string) => void) {
  const reported: number[] = []
  return async () => {
    const own = Array.from(clients, ({ processID }) => processID)
    const values = [own, [...own, ...reported]]
    const { rows } = await pool.query<{ pid: number; sentence: string }>(BLOCKERS, values)
    for (const { pid, sentence } of rows) {
      reported.push(pid)
      notice(sentence)
    }
  }
}

/**
 * Moves to a server that was promoted, even while the one in use is alive. Its sessions end, so that `refresh` repeats
 * the lines in progress on the new primary.
 */
async function followPrimary(
  url: string,
  { pool, clients, primary }: OpenedPool,
  notice: (sentence: string) => void,
): Promise<void> {
  const old = String(pool.options.connectionString)
  const newest = await primaryOf(url, primary)
  if (newest === old || old !== pool.options.connectionString) return
  pool.options.connectionString = newest
  notice(
    `${serverName(newest)} was promoted and replaces ${serverName(old)}. What was written in the last two seconds ` +
      'may be on the old primary alone: repeat it.',
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
  const [newest] = servers as [FoundServer]
  const used = servers.find((server) => server.url === primary.server?.url)
  if (used && !supersedes(newest, used)) return used.url
  const rival = servers.find(
    (other) => other.started !== newest.started && other.timeline > 0 && !supersedes(newest, other),
  )
  if (rival !== undefined)
    throw new OperatorError(
      `${serverName(newest.url)} and ${serverName(rival.url)} in DATABASE_URL are both primaries, and neither ` +
        'replaced the other: DATABASE_URL must name only the one that is in use.',
    )
  primary.use(newest)
  return newest.url
}

export async function isCitus(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql`select from pg_extension where extname = 'citus'`.execute(db)
  return rows.length > 0
}

/** @throws OperatorError when migrations are missing */
export async function requireSchema({ db }: OperatorDatabase): Promise<void> {
  const applied = await db
    .withSchema('public')
    .selectFrom('kysely_migration')
    .select('name')
    .execute()
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
