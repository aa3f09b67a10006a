import * as fs from 'node:fs/promises'
import * as path from 'node:path'
import type { Kysely } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'

const migrationFolder = path.resolve(import.meta.dirname, '../../migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })

/**
 * Runs every migration that the database has not seen, in order, all or none of them. Two runs at the
 * same time wait for each other, and a run with nothing to do changes nothing.
 * @returns the names of the migrations that ran, e.g. `['0001-apps-and-connections']`
 */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<string[]> {
  const { error, results = [] } = await new Migrator({ db, provider }).migrateToLatest()
  if (error) throw error
  return results.map((result) => result.migrationName)
}

/** The names of all migrations that this version of the service knows, in order. */
export async function knownMigrations(): Promise<string[]> {
  return Object.keys(await provider.getMigrations()).sort()
}
