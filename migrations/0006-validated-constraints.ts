import { type Kysely, sql } from 'kysely'

/** Validates the constraints of migration 0005, which reads whole tables. Other sessions read and write meanwhile. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table connection
      validate constraint refreshed_in_years,
      validate constraint changed_in_years,
      validate constraint connection_external_id_check`.execute(db)
  await sql`alter table assets_transfer_order validate constraint completed_in_years`.execute(db)
}
