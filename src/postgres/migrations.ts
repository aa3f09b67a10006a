import * as fs from 'node:fs/promises'
import * as path from 'node:path'
import { type Kysely, sql } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import type { Database } from './database.ts'
import { DatabaseUnavailable, isSchemaBehind } from './errors.ts'
import { build, compile } from './statements.ts'

const migrationFolder = path.resolve(import.meta.dirname, '../../migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })

/**
 * Applies the first missing migration in its own transaction, so that its locks end before the next
 * migration. Concurrent runs wait for each other.
 * @returns its name, such as `0001-apps-and-connections`; undefined if none is missing
 */
export async function migrateOnce<T>(db: Kysely<T>): Promise<string | undefined> {
  const { error, results = [] } = await new Migrator({ db, provider }).migrateUp()
  if (error) throw error
  return results[0]?.migrationName
}

/** Applies all missing migrations in order. If one fails, the earlier ones stay. */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<void> {
  while (await migrateOnce(db)) {}
}

let known: Promise<string[]> | undefined

/**
 * Returns the migrations of this release that are not among the applied ones, in order. It reads the
 * files once, because an upgrade may replace them while this process runs. It ignores unknown
 * migrations: during an upgrade, the old release runs on the new schema.
 */
export async function missingFrom(applied: ReadonlySet<unknown>): Promise<string[]> {
  known ??= provider.getMigrations().then((migrations) => Object.keys(migrations).sort())
  return (await known).filter((name) => !applied.has(name))
}

/** True if the tables exist and the service may read them. Unlike a SELECT, it waits for no lock. */
const readable = sql.join(
  [
    'app_token',
    'connection',
    'portfolio_transaction',
    'portfolio_transaction_day',
    'portfolio_transaction_month',
    'account_transaction',
    'account_transaction_day',
    'account_transaction_month',
    'assets_transfer_order',
  ].map((table) => sql<boolean>`has_any_column_privilege(${sql.lit(table)}, 'select')`),
  sql` and `,
)

const applied = compile(
  'applied migrations',
  sql`${build
    .selectFrom('kysely_migration')
    .select('name')
    .where(sql<boolean>`${readable}`)
    .orderBy('name')}`,
)

/**
 * Returns the names of the missing migrations.
 * @throws DatabaseUnavailable
 */
export async function missingMigrations(db: Pick<Database, 'probe'>): Promise<string[]> {
  const rows = await db.probe(applied, []).catch((error) => {
    // The tables do not exist, or the role has no privileges on them.
    if (error instanceof DatabaseUnavailable && isSchemaBehind(error.cause)) return undefined
    throw error
  })
  const names = new Set<unknown>()
  for (let row = rows?.shift(); row; row = rows?.shift()) names.add(row[0])
  return missingFrom(names)
}
