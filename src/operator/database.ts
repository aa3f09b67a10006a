import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { knownMigrations } from '../postgres/migrations.ts'
import type { Tables } from '../postgres/tables.ts'

/** The database as the operator uses it: it may write. */
export interface OperatorDatabase {
  db: Kysely<Tables>
  /** The same connections, for what needs one to itself. */
  pool: pg.Pool
}

/** Lends the database at a URL, and closes its connections afterwards. */
export async function withDatabase<T>(
  url: string,
  use: (database: OperatorDatabase) => Promise<T>,
): Promise<T> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    application_name: 'investment-data-operator',
  })
  // A connection that breaks while idle is told by the next statement.
  pool.on('error', () => {})
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  try {
    return await use({ db, pool })
  } finally {
    await db.destroy()
  }
}

/** @throws OperatorError that names the command which mends it, when migrations are missing */
export async function requireSchema({ db }: OperatorDatabase): Promise<void> {
  const applied = await appliedMigrations(db)
  const missing = (await knownMigrations()).filter((name) => !applied.has(name))
  if (missing.length === 0) return
  throw new OperatorError(
    `The schema of the database is behind (${missing.join(', ')} not applied): ` +
      'run `npm run operator -- migrate` first.',
  )
}

async function appliedMigrations(db: Kysely<Tables>): Promise<Set<string>> {
  try {
    const rows = await db.selectFrom('kysely_migration').select('name').execute()
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    const undefinedTable = '42P01'
    if (error instanceof pg.DatabaseError && error.code === undefinedTable) return new Set()
    throw error
  }
}
