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
  for (const table of ['portfolio_transaction', 'account_transaction'])
    await giveMergeItsRows(db, table)
}

/**
 * Works around a fault of PostgreSQL 15 to 18. On a partitioned table, `merge` that inserts a row and then updates others
 * shows the inserted row to the trigger after UPDATE, instead of the updated rows. Counts, change numbers and removals
 * would be wrong. PostgreSQL does not keep the inserted row for the triggers if the table has a trigger before INSERT. The
 * condition of this one is false, so that PostgreSQL never calls its function.
 */
async function giveMergeItsRows(db: Kysely<unknown>, table: string): Promise<void> {
  await sql`
    create trigger ${sql.id(`${table}_merge`)} before insert on public.${sql.id(table)}
      for each row when (false) execute function public.number_again()`.execute(db)
}
