import { sql } from 'kysely'
import { build, compile } from './builder.ts'
import type { Database } from './database.ts'
import { knownMigrations } from './migrate.ts'
import { DatabaseUnavailable, isSchemaBehind } from './unavailable.ts'

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
