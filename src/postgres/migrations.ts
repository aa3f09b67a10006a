import { type Kysely, type QueryExecutorProvider, sql } from 'kysely'
import { migrations } from '../../migrations/index.ts'
import { Unavailable } from '../limits/unavailable.ts'
import type { Database } from './database.ts'
import { isDenied, isSchemaBehind, ServerIsStandby } from './failures.ts'
import { compile } from './statements.ts'

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
  await createMigrationTable(db)
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

async function createMigrationTable(db: QueryExecutorProvider): Promise<void> {
  await sql`
    create table if not exists public.kysely_migration
      (name varchar(255) primary key, timestamp varchar(255) not null)`
    .execute(db)
    .catch((error) => {
      if (!CREATED_MEANWHILE.includes(error.code)) throw error
    })
}

/** IF NOT EXISTS does not cover a concurrent run. */
const CREATED_MEANWHILE = ['23505', '42P07', '42710']

/** Applies all missing migrations in order. If one fails, the earlier ones stay. */
export async function migrateToLatest<T>(db: Kysely<T>): Promise<void> {
  while (await migrateOnce(db)) {}
}

/** Ignores unknown migrations: during an upgrade, the old release runs on the new schema. */
export function missingFrom(applied: ReadonlySet<unknown>): string[] {
  return Object.keys(migrations).filter((name) => !applied.has(name))
}

/** Tables that this release reads. A migration keeps its own list, because it must not change. */
const TABLES = [
  'app',
  'app_token',
  'connection',
  'connection_version',
  'portfolio_transaction',
  'portfolio_transaction_month',
  'portfolio_transaction_removal',
  'account_transaction',
  'account_transaction_month',
  'account_transaction_removal',
  'assets_transfer_order',
]

// A missing table is no denied one: its migration is missing. Unlike a SELECT, has_any_column_privilege() waits for
// no lock.
export const appliedStatement = compile(
  'applied migrations',
  'Reads the applied migrations, and one table without the right to read it.',
  sql`
    select name, pg_is_in_recovery(), (
      select min(name) from unnest(${sql.lit(`{${TABLES}}`)}::text[]) as expected (name)
      where not has_any_column_privilege(to_regclass('public.' || name), 'select')
    ) as denied
    from public.kysely_migration order by name`,
)

export class RightDenied extends Unavailable {
  override name = 'RightDenied'

  constructor(reason: string, options?: ErrorOptions) {
    super(
      `PostgreSQL denies the service a right that it needs (${reason}). ` +
        'Run `npm run operator -- migrate` as the owner of the database.',
      options,
    )
  }
}

/** @throws Unavailable, for example RightDenied or ServerIsStandby */
export async function missingMigrations(
  db: Pick<Database, 'probe' | 'allowsStandby'>,
): Promise<string[]> {
  const rows = await db.probe(appliedStatement, []).catch((error: Error) => {
    const { cause } = error
    if (isDenied(cause)) throw new RightDenied(cause.message, { cause })
    if (isSchemaBehind(cause)) return undefined
    throw error
  })
  const names = new Set<unknown>()
  for (let row = rows?.shift(); row; row = rows?.shift()) {
    const [name, standby, denied] = row
    // Without a pooler, a standby rejects the connection (connect.ts).
    if (standby === 't' && !db.allowsStandby) throw new ServerIsStandby('the server is a standby')
    if (denied !== null) throw new RightDenied(`permission denied for table ${denied}`)
    names.add(name)
  }
  return missingFrom(names)
}
