import { Socket } from 'node:net'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { missingFrom } from '../postgres/migrations.ts'
import type { Tables } from '../postgres/tables.ts'

/** Writable database of the operator. */
export interface OperatorDatabase {
  db: Kysely<Tables>
  /** The same connections, for work that needs a dedicated one. */
  pool: pg.Pool
}

/** Opens the database at a URL, and closes its connections after `use`. */
export async function withDatabase<T>(
  url: string,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const sockets: Socket[] = []
  const pool = new pg.Pool({
    connectionString: url,
    stream: () => {
      const socket = new Socket()
      sockets.push(socket)
      return socket
    },
    max: 2,
    connectionTimeoutMillis: 10_000,
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
