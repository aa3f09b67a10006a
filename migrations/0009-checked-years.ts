import { type Kysely, sql } from 'kysely'

/** Checks the times that were written before migration 0008. Reads and writes go on meanwhile. */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Such a connection answered no request. Its next refresh sets the time again.
  await sql`
    update public.connection set refreshed_at = null
    where refreshed_at < '0001-01-01 00:00:00+00' or refreshed_at >= '10000-01-01 00:00:00+00'`.execute(
    db,
  )
  await sql`
    alter table public.connection
      validate constraint changed_in_years, validate constraint refreshed_in_years`.execute(db)
  await sql`alter table public.assets_transfer_order validate constraint completed_in_years`.execute(
    db,
  )
}
