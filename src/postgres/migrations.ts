import { type Kysely, type QueryExecutorProvider, sql } from 'kysely'
import { migrations } from '../../migrations/index.ts'
import type { Database } from './database.ts'
import { isDenied, isSchemaBehind, ServerIsStandby } from './failures.ts'
import { compile } from './statements.ts'

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
    await lockMigrations(transaction)
    await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(transaction)
    const { rows } = await sql<{ name: string }>`
      select name from public.kysely_migration`.execute(transaction)
    const [name] = missingFrom(new Set(rows.map((row) => row.name)))
    if (name === undefined) return undefined
    await migrations[name]?.(transaction)
    const now = new Date().toISOString()
    await sql`insert into public.kysely_migration values (${name}, ${now})`.execute(transaction)
    return name
  })
}

/**
 * Waits until no other run migrates or configures this database. The service's role has no right to this
 * lock. Every role may hold the advisory lock of Kysely's Migrator.
 */
export async function lockMigrations(transaction: QueryExecutorProvider): Promise<void> {
  await sql`set local lock_timeout = 0`.execute(transaction)
  await sql`lock table public.kysely_migration in share row exclusive mode`.execute(transaction)
}

/** Applies all missing migrations in order. If one fails, the earlier ones stay. */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<void> {
  while (await migrateOnce(db)) {}
}

/** Ignores unknown migrations: during an upgrade, the old release runs on the new schema. */
export function missingFrom(applied: ReadonlySet<unknown>): string[] {
  return Object.keys(migrations).filter((name) => !applied.has(name))
}

export const appliedStatement = compile(
  'applied migrations',
  'Reads the applied migrations.',
  sql`select name, pg_is_in_recovery() from public.kysely_migration order by name`,
)

/** @throws Unavailable, for example ServerIsStandby. If PostgreSQL denies a right, its error is the cause */
export async function missingMigrations(
  db: Pick<Database, 'probe' | 'allowsStandby'>,
): Promise<string[]> {
  const rows = await db.probe(appliedStatement, []).catch((error: Error) => {
    const { cause } = error
    if (isSchemaBehind(cause) && !isDenied(cause)) return undefined
    throw error
  })
  const names = new Set<unknown>()
  for (let row = rows?.shift(); row; row = rows?.shift()) {
    const [name, standby] = row
    // Without a pooler, a standby rejects the connection (connect.ts).
    if (standby === 't' && !db.allowsStandby) throw new ServerIsStandby('the server is a standby')
    names.add(name)
  }
  return missingFrom(names)
}
