import { type Kysely, sql } from 'kysely'

/**
 * Role for pipelines that write by SQL: rows of the three lists, and new connections. It neither reads the hash of a
 * token, nor writes what the triggers maintain: counts, versions and change numbers.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // A role belongs to the whole server: see migration 0004.
  await sql`
    do $$ begin
      if not exists (select from pg_roles where rolname = 'investment_writer') then
        create role investment_writer nologin;
      end if;
    exception when duplicate_object or unique_violation then null;
    end $$`.execute(db)
  for (const table of ['portfolio_transaction', 'account_transaction', 'assets_transfer_order']) {
    const { rows } = await sql<{ names: string }>`
      select string_agg(quote_ident(attname), ', ') as names from pg_attribute
      where attrelid = ${table}::regclass and attnum > 0 and not attisdropped and attgenerated = ''
        and attname <> 'change_number'`.execute(db)
    const columns = sql.raw(rows[0]?.names ?? '')
    await sql`
      grant select, delete, insert (${columns}), update (${columns}) on ${sql.id(table)}
        to investment_writer`.execute(db)
    await allowAll(db, table)
  }
  await sql`
    grant select (id, app_id, label, external_id, created_at, changed_at, data_version, refreshed_at),
      insert (id, app_id, token_hash, label, external_id), update (label, external_id, refreshed_at)
      on connection to investment_writer`.execute(db)
  await sql`grant select (id, name) on app to investment_writer`.execute(db)
  await allowAll(db, 'connection')
  await allowAll(db, 'app')
}

async function allowAll(db: Kysely<unknown>, table: string): Promise<void> {
  await sql`
    create policy of_the_writer on ${sql.id(table)} for all to investment_writer using (true)`.execute(
    db,
  )
}
