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
  // A metric of all apps, which row-level security hides from the service. Ids are hashes, so 5,000 of them in a row
  // are a random sample of constant cost.
  await sql`
    create function sample_refreshes() returns table (refreshed text, connections bigint)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$ declare start bigint := (random() * 2::float8 ^ 63)::numeric * 1.99 - 2::numeric ^ 63;
    begin
      return query
        select case
            when c.refreshed_at is null then 'never'
            when c.refreshed_at > now() - interval '1 day' then '1d'
            when c.refreshed_at > now() - interval '2 days' then '2d'
            when c.refreshed_at > now() - interval '7 days' then '7d'
            else 'older' end, count(*)
        from (
          (select refreshed_at from connection where id >= start order by id limit 5000)
          union all
          (select refreshed_at from connection where id < start order by id limit 5000)
          limit 5000) c
        group by 1;
    end $$`.execute(db)
  await sql`revoke execute on function sample_refreshes() from public`.execute(db)
  await sql`grant execute on function sample_refreshes() to investment_service`.execute(db)
}
