import * as fs from 'node:fs/promises'
import * as path from 'node:path'
import type { Kysely } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'

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
