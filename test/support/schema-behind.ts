import type { Kysely } from 'kysely'
import type { Tables } from '../../src/postgres/tables.ts'

/**
 * Makes a schema look as if its newest migration had not run.
 * @returns the migration's name, and a function that restores it
 */
export async function hideNewestMigration(db: Kysely<Tables>) {
  const newest = await db
    .selectFrom('kysely_migration')
    .selectAll()
    .orderBy('name', 'desc')
    .executeTakeFirstOrThrow()
  await db.deleteFrom('kysely_migration').where('name', '=', newest.name).execute()
  const restore = () => db.insertInto('kysely_migration').values(newest).execute()
  return { name: newest.name, restore }
}
