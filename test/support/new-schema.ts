import type { Test } from 'tap'
import { migrateToLatest } from '../../migrations/index.ts'
import { catalogOf } from '../../src/operator/catalog.ts'
import { createDatabase } from './database.ts'
import { openAsOwner } from './logins.ts'

/** Reads the schema that all migrations make in a new database. The template of the tests may have partitions. */
export async function catalogOfNewDatabase(t: Test): Promise<string[]> {
  const { url } = await createDatabase(t, 'template0')
  const db = openAsOwner(t, url)
  await migrateToLatest(db)
  return await catalogOf(db)
}
