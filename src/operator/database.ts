import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { missingFrom } from '../../migrations/index.ts'
import { NotInDatabase, OperatorError } from '../operator-error.ts'
import { Hosts } from '../postgres/hosts.ts'
import { serverName } from '../postgres/server-urls.ts'
import { requiredSettings } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { SafeClient } from '../postgres/wire/safe-client.ts'

export interface OperatorDatabase {
  db: Kysely<Tables>
  pool: pg.Pool
  signal: AbortSignal
  /** True if each transaction may have another session, without the settings of the connection. */
  pooler: boolean
}

interface CommandOptions {
  signal: AbortSignal
  /** Receives a sentence when a statement waits, or when another host becomes the primary. */
  notice: (sentence: string) => void
  /** Number of sessions with pipelines. An interrupted command first finishes their work. */
  sessions?: number | undefined
  /** True behind PgBouncer in transaction mode: each transaction has another session. */
  pooler: boolean
}

const CONNECT_MS = 10_000
/** Time after which the command says which statement waits for a lock. */
const SLOW_MS = 2_000
/** Statements whose time is that of other sessions. The work of other statements may take minutes. */
const TAKES_LOCK = /^(?:\s*--.*\n)?\s*(lock table|update connection) |\sfor (no key )?update$/
/** Time in which the sessions of an interrupted `refresh` finish their lines. */
const FINISH_MS = 10_000

const REQUIRED_SETTINGS = Object.entries(requiredSettings).map(
  ([name, value]) => `set ${name} = '${value}'`,
)

/** Opens a database, and follows its newest primary. Closes the connections after `use`, and at an abort. */
export async function withDatabase<T>(
  url: string,
  options: CommandOptions,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const { signal, pooler } = options
  const hosts = new Hosts({ url, pooler, statementTimeoutMs: CONNECT_MS }, () => {})
  await hosts.follow()
  const clients = new Set<CommandClient>()
  const pool = openPool(hosts, clients, options)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const stopFollowing = followPrimary(hosts, pool, clients, options)
  const stopListening = closeAtAbort(clients, options)
  try {
    signal.throwIfAborted()
    if (pooler) await requireOwnSettings(db)
    return await use({ db, pool, signal, pooler })
  } finally {
    stopFollowing()
    stopListening()
    await db.destroy()
  }
}

/** Returns a pool of sessions on the host in use. `clients` has those that are open. */
function openPool(
  hosts: Hosts,
  clients: Set<CommandClient>,
  { signal, sessions, pooler, notice }: CommandOptions,
): pg.Pool {
  const reportWait = waitReporter(notice)
  const pool = new pg.Pool({
    Client: CommandClient,
    connectionString: hosts.url,
    max: 1 + (sessions ?? 1),
    // PgBouncer 1.18 mixes up the messages of pipelined queries.
    pipeline: sessions !== undefined && !pooler,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-operator',
    onConnect: async (connected) => {
      signal.throwIfAborted()
      const client = connected as CommandClient
      // If a connection breaks, the next statement fails. Without a listener, the process would end.
      client.on('error', () => {})
      client.onWait = reportWait
      clients.add(client)
      client.once('end', () => clients.delete(client))
      if (!pooler) await prepareSession(client, hosts)
    },
  })
  pool.on('error', () => {})
  return pool
}

/** Checks that the server of a session is the newest primary, and makes the settings of the session. */
async function prepareSession(client: CommandClient, hosts: Hosts): Promise<void> {
  await hosts.accept(client)
  // The role or the database may have others. PgBouncer in session mode would reject them as startup options.
  await client.query([withoutTimeouts('session'), ...REQUIRED_SETTINGS].join('; '))
  await client.query(SESSION_SETTINGS).catch(() => {})
}

/**
 * Looks for a newer primary each second. The sessions on the old one then end, so that `refresh` repeats the lines in
 * progress on the new one. @returns a function that ends this
 */
function followPrimary(
  hosts: Hosts,
  pool: pg.Pool,
  clients: Set<CommandClient>,
  { notice }: CommandOptions,
): () => void {
  const follow = async () => {
    await hosts.follow()
    if (hosts.url === pool.options.connectionString) return
    pool.options.connectionString = hosts.url
    notice(
      `${serverName(hosts.url)} was promoted, and is the primary from now on. What was written in the last two ` +
        'seconds may be on the old one alone: repeat it.',
    )
    for (const client of clients) client.destroy()
  }
  const timer = setInterval(() => follow().catch(() => {}), 1_000)
  return () => clearInterval(timer)
}

/**
 * Returns a function that says once which statement waits. The command itself does not look for the session that blocks
 * it: this needs a second session, and a role may have only one.
 */
function waitReporter(notice: CommandOptions['notice']): (processID: number, text: string) => void {
  let isReported = false
  return (processID, text) => {
    if (isReported) return
    isReported = true
    // The first line may be the purpose of the statement, as a comment.
    const [statement = ''] = text
      .replace(/^--.*\n/, '')
      .trim()
      .split(/\s*\n\s*/)
    notice(
      `Waiting for a lock (process ${processID} of PostgreSQL): ${statement}. ` +
        'docs/runbook.md#a-command-waits-for-a-lock finds the session that holds it.',
    )
  }
}

/** Closes the connections at an abort. @returns a function that ends this */
function closeAtAbort(
  clients: Set<CommandClient>,
  { signal, sessions }: CommandOptions,
): () => void {
  const graceMs = sessions === undefined ? 0 : FINISH_MS
  let timer: NodeJS.Timeout | undefined
  const close = () => clients.forEach((client) => void client.interrupt())
  const onAbort = () => {
    timer = setTimeout(close, graceMs)
  }
  signal.addEventListener('abort', onAbort)
  return () => {
    signal.removeEventListener('abort', onAbort)
    clearTimeout(timer)
  }
}

class CommandClient extends SafeClient {
  /** Process of its session in PostgreSQL. */
  declare readonly processID: number
  /** Receives the process and the text of a statement that takes long. */
  onWait: (processID: number, text: string) => void = () => {}
  #commit: Promise<unknown> | undefined

  // biome-ignore lint/suspicious/noExplicitAny: pg has nine signatures.
  override query(...args: [any]): any {
    const result = super.query(...args)
    const [{ text = args[0] }] = args
    if (text === 'commit') this.#commit = Promise.resolve(result)
    if (!TAKES_LOCK.test(text)) return result
    const timer = setTimeout(() => this.onWait(this.processID, text), SLOW_MS)
    const stop = () => clearTimeout(timer)
    // With a callback, as pg.Pool calls it, there is no promise.
    Promise.resolve(result).then(stop, stop)
    return result
  }

  /** Closes the connection. A commit in progress ends first: its result would otherwise be unknown. */
  async interrupt(): Promise<void> {
    await this.#commit?.catch(() => {})
    this.destroy()
  }
}

/** PostgreSQL notices a closed connection in 1 s, a lost one in 1 min. On Windows, it rejects the first setting. */
const SESSION_SETTINGS = `
  set client_connection_check_interval = '1s';
  set idle_in_transaction_session_timeout = '1min';
  set tcp_keepalives_idle = 30;
  set tcp_keepalives_interval = 10;
  set tcp_keepalives_count = 3`

/**
 * Returns a statement that lifts the limits of time of the role or the database: a load, a deletion and a verification may
 * take hours. PostgreSQL 16 and earlier have no `transaction_timeout`. A transaction lifts them itself, because a pooler
 * gives each one another session.
 */
export const withoutTimeouts = (scope: 'session' | 'transaction'): string => `
  select set_config(name, '0', ${scope === 'transaction'})
  from unnest(array['statement_timeout', 'transaction_timeout', 'idle_session_timeout']) name
  where current_setting(name, true) is not null`

/**
 * Behind a pooler, a command cannot set the settings of its sessions: those of its role count.
 * @throws OperatorError with the statement that sets them
 */
async function requireOwnSettings(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ statement: string }>`
    select format('alter role %I in database %I set %s = %L', current_user, current_database(), name, value) as statement
    from (values
      ('search_path', 'public', (current_schemas(false))[1]),
      ('default_transaction_isolation', 'read committed', current_setting('default_transaction_isolation'))
    ) setting (name, value, used)
    where used is distinct from value`.execute(db)
  if (rows.length === 0) return
  const statements = rows.map(({ statement }) => statement)
  throw new OperatorError(
    'Behind a pooler (DATABASE_POOLER), commands use the settings of their role, and these would not work. Connect to ' +
      `PostgreSQL itself, or run these statements and reconnect the pooler:\n${statements.join(';\n')};`,
  )
}

export async function isCitus(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql`select from pg_extension where extname = 'citus'`.execute(db)
  return rows.length > 0
}

/** @throws OperatorError when migrations are missing */
export async function requireSchema({ db }: OperatorDatabase): Promise<void> {
  const applied = await db.selectFrom('kysely_migration').select('name').execute()
  const names = new Set(applied.map(({ name }) => name))
  const missing = missingFrom(names)
  if (missing.length === 0) return
  throw new NotInDatabase(
    `The schema of the database is outdated (${missing.join(', ')} not applied): ` +
      'run `operator migrate` first.',
  )
}

/** Finds an app by its name. @throws OperatorError when the app does not exist */
export async function findApp(db: Kysely<Tables>, name: string) {
  const app = db.selectFrom('app').select(['id', 'name']).where('name', '=', name)
  return await app.executeTakeFirstOrThrow(() => missingApp(name))
}

export function missingApp(name: string): NotInDatabase {
  return new NotInDatabase(`There is no app ${name}: \`app list\` shows all apps.`)
}
