import { Socket } from 'node:net'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { missingFrom } from '../postgres/migrations.ts'
import { findServer } from '../postgres/pool.ts'
import { serverUrls } from '../postgres/server-urls.ts'
import type { Tables } from '../postgres/tables.ts'

/** Writable database of the operator. */
export interface OperatorDatabase {
  db: Kysely<Tables>
  /** The same connections, for work that needs a dedicated one. */
  pool: pg.Pool
}

const CONNECT_MS = 10_000

/** Opens the database at a URL, and closes its connections after `use`. */
export async function withDatabase<T>(
  url: string,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const connectionString = await primaryOf(url)
  const sockets: Socket[] = []
  const pool = new pg.Pool({
    connectionString,
    stream: () => {
      const socket = new Socket()
      sockets.push(socket)
      return socket
    },
    max: 2,
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    application_name: 'investment-data-operator',
  })
  // If an idle connection breaks, the next statement fails.
  pool.on('error', () => {})
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  try {
    return await use({ db, pool })
  } finally {
    await db.destroy()
    // Without a password, pg leaves its socket open until PostgreSQL's authentication_timeout (60 s).
    for (const socket of sockets) socket.destroy()
  }
}

/**
 * Returns the URL of the primary, if a URL names several hosts.
 * @throws OperatorError if none of them accepts connections as a primary
 */
async function primaryOf(url: string): Promise<string> {
  const urls = serverUrls(url)
  if (urls.length === 1) return url
  const limits = { size: 1, waitMs: CONNECT_MS, statementTimeoutMs: CONNECT_MS, pooler: false }
  return await findServer({ url, ...limits }, urls).catch(({ errors }: AggregateError) => {
    const reasons = errors.map(({ message }: Error) => message).join('; ')
    throw new OperatorError(`No server in DATABASE_URL is a primary that responds (${reasons}).`)
  })
}

/** @throws OperatorError when migrations are missing */
export async function requireSchema({ db }: OperatorDatabase): Promise<void> {
  const applied = await appliedMigrations(db)
  const missing = await missingFrom(applied)
  if (missing.length === 0) return
  throw new OperatorError(
    `The schema of the database is outdated (${missing.join(', ')} not applied): ` +
      'run `npm run operator -- migrate` first.',
  )
}

async function appliedMigrations(db: Kysely<Tables>): Promise<Set<string>> {
  try {
    const rows = await db
      .withSchema('public')
      .selectFrom('kysely_migration')
      .select('name')
      .execute()
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    const undefinedTable = '42P01'
    if (error instanceof pg.DatabaseError && error.code === undefinedTable) return new Set()
    throw error
  }
}

/**
 * Finds an app by its name.
 * @param options `lock`: other sessions wait to change it, or to add tokens and connections
 * @throws OperatorError when the app does not exist
 */
export async function findApp(db: Kysely<Tables>, name: string, { lock = false } = {}) {
  const app = await db
    .selectFrom('app')
    .select(['id', 'name'])
    .where('name', '=', name)
    .$if(lock, (query) => query.forUpdate())
    .executeTakeFirst()
  if (app) return app
  throw new OperatorError(`There is no app ${name}: \`app list\` shows all apps.`)
}
