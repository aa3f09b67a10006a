import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { up as appsAndConnections } from './0001-apps-and-connections.ts'
import { up as transactions } from './0002-transactions.ts'
import { up as rowCounts } from './0003-row-counts.ts'
import { up as serviceRole } from './0004-service-role.ts'
import { up as versionsAndWriters } from './0005-versions-and-writers.ts'
import { up as validatedConstraints } from './0006-validated-constraints.ts'

/** Migrations of this release by name, in order. */
const migrations: Record<string, Migration['up']> = {
  '0001-apps-and-connections': appsAndConnections,
  '0002-transactions': transactions,
  '0003-row-counts': rowCounts,
  '0004-service-role': serviceRole,
  '0005-versions-and-writers': versionsAndWriters,
  '0006-validated-constraints': validatedConstraints,
}

/** IF NOT EXISTS does not cover a concurrent run. */
const CREATED_MEANWHILE = ['23505', '42P07', '42710']

/**
 * Applies the first missing migration in its own transaction, so that its locks end before the next
 * migration. Concurrent runs wait for each other.
 * @param lockTimeoutMs maximum wait for each lock of the migration; 0: no limit
 * @returns its name; undefined if none is missing
 */
export async function migrateOnce<T>(
  db: Kysely<T>,
  lockTimeoutMs = 0,
): Promise<string | undefined> {
  await sql`
    create table if not exists public.kysely_migration
      (name varchar(255) primary key, timestamp varchar(255) not null)`
    .execute(db)
    .catch((error) => {
      if (!CREATED_MEANWHILE.includes(error.code)) throw error
    })
  return await db.transaction().execute(async (transaction) => {
    // The service's role has no right to this lock. Every role may hold the advisory lock of Kysely's Migrator.
    await sql`set local lock_timeout = 0`.execute(transaction)
    // The role may have a schema of its own, which comes first by default.
    await sql`set local search_path = public`.execute(transaction)
    await sql`lock table public.kysely_migration in share row exclusive mode`.execute(transaction)
    await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction)
    const { rows } = await sql<{ name: string }>`
      select name from public.kysely_migration`.execute(transaction)
    const applied = new Set(rows.map((row) => row.name))
    const [name] = missingFrom(applied)
    if (name === undefined) return undefined
    await migrations[name]?.(transaction)
    const now = new Date().toISOString()
    await sql`insert into public.kysely_migration values (${name}, ${now})`.execute(transaction)
    return name
  })
}

/** Applies all missing migrations in order. If one fails, the earlier ones stay. */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<void> {
  while (await migrateOnce(db)) {}
}

/** Ignores unknown migrations: during an upgrade, the old release runs on the new schema. */
export function missingFrom(applied: ReadonlySet<unknown>): string[] {
  return Object.keys(migrations).filter((name) => !applied.has(name))
}
