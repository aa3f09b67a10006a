import { type Kysely, sql } from 'kysely'
import { replaceTriggers } from './0008-integrity.ts'

/** Replaces the triggers again: databases of a development version have earlier ones of migration 0008. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`set local citus.enable_unsafe_triggers = on`.execute(db)
  // A function that has begun would meet the new trigger. Reads go on. A refresh locks the tables in this order.
  for (const table of [
    'connection',
    'portfolio_transaction',
    'account_transaction',
    'assets_transfer_order',
  ])
    await sql`lock table public.${sql.id(table)} in share row exclusive mode`.execute(db)
  await replaceTriggers(db)
}
