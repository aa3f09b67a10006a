import { sql } from 'kysely'
import { build, compile } from './builder.ts'
import type { Database } from './database.ts'
import { knownMigrations } from './migrate.ts'

const applied = compile(
  'applied migrations',
  sql`${build.selectFrom('kysely_migration').select('name').orderBy('name')}`,
)

/**
 * Which migrations of this release the database has not seen. One that this release does not know is no
 * fault: during an upgrade, the old release runs on the new schema for a while.
 * @throws DatabaseUnavailable
 */
export async function missingMigrations(db: Database): Promise<string[]> {
  const known = await knownMigrations()
  const rows = await db.read(applied, []).catch((error) => {
    if (isUndefinedTable(error)) return undefined
    throw error
  })
  const names = new Set<string | null | undefined>()
  for (let row = rows?.shift(); row; row = rows?.shift()) names.add(row[0])
  return known.filter((name) => !names.has(name))
}

function isUndefinedTable(error: unknown): boolean {
  return (error as { code?: string }).code === '42P01'
}
