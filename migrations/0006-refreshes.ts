import { type Kysely, sql } from 'kysely'

/** Time of the last refresh of a connection, and its id at the operator. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table connection
      -- Set by each refresh and import, also without changes. Neither the data version nor the ETag has it.
      add column refreshed_at timestamptz,
      -- Unique in an app. No index has refreshed_at, so that its update writes no index.
      add column external_id text check (external_id <> '' and char_length(external_id) <= 255)
  `.execute(db)
  // Partial: PostgreSQL must not use it for the lookup of a request. On Citus, a unique index must have the column
  // that distributes the table.
  await sql`
    do $$ begin
      if to_regclass('pg_dist_partition') is not null then
        if exists (select from pg_dist_partition where logicalrelid = 'connection'::regclass) then
          create index connection_external_id on connection (app_id, external_id)
            where external_id is not null;
          return;
        end if;
      end if;
      create unique index connection_external_id on connection (app_id, external_id)
        where external_id is not null;
    end $$`.execute(db)
  await sql`grant select (refreshed_at) on connection to investment_service`.execute(db)
}
