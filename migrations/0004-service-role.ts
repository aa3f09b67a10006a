import { type Kysely, sql } from 'kysely'

/**
 * Role of the service, with SELECT on the columns that it needs. Row-level security is defence in depth
 * behind the service's own WHERE clauses. It shows the app token with the given hash, and that app's
 * connection with the given hash. Then it shows the rows of this connection. A statement names each of
 * them with set_config() for its transaction. One that omits a step or its WHERE clause sees no row.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // A role belongs to the whole server. Another database's migration or an administrator may have
  // created it, or may create it at this moment.
  await sql`
    do $$ begin
      if not exists (select from pg_roles where rolname = 'investment_service') then
        create role investment_service nologin;
      end if;
    exception when duplicate_object or unique_violation then null;
    end $$`.execute(db)
  await grantReading(db)
  await sql`
    create policy look_up_by_hash on app_token for select to investment_service
      using (token_hash = decode(current_setting('service.token_hash', true), 'hex'))`.execute(db)
  await sql`
    create policy look_up_by_client_id on app for select to investment_service
      using (client_id = current_setting('service.client_id', true))`.execute(db)
  await sql`
    create policy of_the_calling_app on connection for select to investment_service
      using (app_id = nullif(current_setting('service.app_id', true), '')::uuid
        and token_hash = decode(current_setting('service.connection_hash', true), 'hex'))
  `.execute(db)
  for (const table of rowTables) {
    await sql`
      create policy of_the_connection on ${sql.id(table)} for select to investment_service
        using (connection_id = nullif(current_setting('service.connection_id', true), '')::bigint)
    `.execute(db)
  }
}

const rowTables = [
  'portfolio_transaction',
  'portfolio_transaction_day',
  'portfolio_transaction_month',
  'portfolio_transaction_removal',
  'account_transaction',
  'account_transaction_day',
  'account_transaction_month',
  'account_transaction_removal',
  'assets_transfer_order',
]

async function grantReading(db: Kysely<unknown>): Promise<void> {
  const readable = {
    app: 'id, client_id',
    app_token: 'app_id, token_hash, expires_at, revoked_at',
    connection:
      'id, app_id, token_hash, portfolio_transactions, account_transactions, data_version, changed_at, change_horizon',
  }
  for (const [table, columns] of Object.entries(readable)) {
    await sql`grant select (${sql.raw(columns)}) on ${sql.id(table)} to investment_service`.execute(
      db,
    )
    await sql`alter table ${sql.id(table)} enable row level security`.execute(db)
  }
  for (const table of rowTables) {
    await sql`grant select on ${sql.id(table)} to investment_service`.execute(db)
    await sql`alter table ${sql.id(table)} enable row level security`.execute(db)
  }
  // The readiness check compares these names with the migrations of the release.
  await sql`grant select (name) on kysely_migration to investment_service`.execute(db)
}
