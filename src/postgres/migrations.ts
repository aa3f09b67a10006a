import * as fs from 'node:fs/promises'
import * as path from 'node:path'
import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import type { Database } from './database.ts'
import { DatabaseUnavailable, isSchemaBehind } from './errors.ts'
import { build, compile } from './statements.ts'

const migrationFolder = path.resolve(import.meta.dirname, '../../migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })

/**
 * Runs the first migration that the database has not seen, in a transaction of its own: what it locked,
 * those who read have back before the next one begins. Two runs at the same time wait for each other.
 * @returns its name, e.g. `0001-apps-and-connections`, or undefined when there was none left
 */
export async function migrateOnce<T>(db: Kysely<T>): Promise<string | undefined> {
  const { error, results = [] } = await new Migrator({ db, provider }).migrateUp()
  if (error) throw error
  return results[0]?.migrationName
}

/** Runs every migration that the database has not seen, in order; where one fails, those before stay. */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<void> {
  while (await migrateOnce(db)) {}
}

let known: Promise<string[]> | undefined

/**
 * The names of all migrations that this version of the service knows, in order. They are looked up once:
 * the next release may replace the files of a process that still runs, and it is not behind for that.
 */
export function knownMigrations(): Promise<string[]> {
  known ??= provider.getMigrations().then((migrations) => Object.keys(migrations).sort())
  return known
}

/** Reads nothing from them, and yet waits, as a request would, for whoever has locked one. */
const untouched = sql.join(
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
  ].map((table) => sql<boolean>`not exists (select from ${sql.id(table)} limit 0)`),
  sql` and `,
)

const applied = compile(
  'applied migrations',
  sql`${build
    .selectFrom('kysely_migration')
    .select('name')
    .where(sql<boolean>`${untouched}`)
    .orderBy('name')}`,
)

/**
 * Which migrations of this release the database has not seen. One that this release does not know is no
 * fault: during an upgrade, the old release runs on the new schema for a while.
 * @throws DatabaseUnavailable, also while a table that the service reads is locked
 */
export async function missingMigrations(db: Pick<Database, 'probe'>): Promise<string[]> {
  const known = await knownMigrations()
  const rows = await db.probe(applied, []).catch((error) => {
    // A database without our tables, or one that a role without rights on them looks at.
    if (error instanceof DatabaseUnavailable && isSchemaBehind(error.cause)) return undefined
    throw error
  })
  const names = new Set<string | null | undefined>()
  for (let row = rows?.shift(); row; row = rows?.shift()) names.add(row[0])
  return known.filter((name) => !names.has(name))
}
