-- New columns and tables. Constraints on rows that exist are validated by migration 0006, in a transaction of its own:
-- it reads whole tables, and this migration locks them.

-- Citus rejects triggers of distributed tables without the first, and functions after a change of many shards without the
-- second. PostgreSQL ignores both settings.
set local citus.enable_unsafe_triggers = on;
set local citus.multi_shard_modify_mode = 'sequential';

-- All locks at once, and in the order of requests, imports and refreshes: the connection first. They cannot deadlock with
-- this migration. A function of a trigger that has begun ends before it is replaced.
lock table connection in access exclusive mode;
lock table portfolio_transaction, account_transaction in share row exclusive mode;
lock table assets_transfer_order in access exclusive mode;

alter table connection
  -- Set by each refresh and import, also without changes. Neither the data version nor the ETag has it. No index has
  -- it, so that its update writes no index.
  add column refreshed_at timestamptz,
  -- The id of the connection at the operator, unique in an app.
  add column external_id text,
  -- The transaction that wrote data_version.
  add column changed_by xid8;

-- Citus adds a constraint in a statement of its own.
alter table connection
  add constraint connection_external_id_check check (
    external_id <> '' and char_length(external_id) <= 255) not valid;

-- Times that a response shows have years of four digits, as in RFC 3339.
alter table connection
  add constraint refreshed_in_years check (
    refreshed_at >= '0001-01-01 00:00:00+00' and refreshed_at < '10000-01-01 00:00:00+00') not valid;
alter table connection
  add constraint changed_in_years check (
    changed_at >= '0001-01-01 00:00:00+00' and changed_at < '10000-01-01 00:00:00+00') not valid;
alter table assets_transfer_order drop constraint assets_transfer_order_completed_at_check;
alter table assets_transfer_order
  add constraint completed_in_years check (
    completed_at >= '0001-01-01 00:00:00+00' and completed_at < '10000-01-01 00:00:00+00') not valid;

-- Earlier versions of a connection, each with its time. The newest version is in `connection`. A restore, a promotion
-- or a new connection never has the same version at the same time, so a cursor with both expires by itself.
create table connection_version (
  connection_id bigint not null,
  data_version bigint not null,
  changed_at timestamptz not null,
  primary key (connection_id, data_version)
);

do $$
declare
  -- On Citus, a table may be distributed: docs/reference/citus.sql.
  distributed boolean := false;
begin
  if to_regclass('pg_dist_partition') is not null then
    select exists (select from pg_dist_partition where logicalrelid = 'connection'::regclass) into distributed;
  end if;
  -- Partial, so that PostgreSQL does not use it for the lookup of a request.
  if distributed then
    perform create_distributed_table('connection_version', 'connection_id', colocate_with => 'connection');
    -- There, a unique index must have the column that distributes the table.
    create index connection_external_id on connection (app_id, external_id) where external_id is not null;
  else
    create unique index connection_external_id on connection (app_id, external_id) where external_id is not null;
  end if;
end $$;

-- After the distribution: Citus requires that both tables of a foreign key are distributed.
alter table connection_version add foreign key (connection_id) references connection on delete cascade;

-- Remembers an earlier version only if another transaction wrote it. Nobody else has seen the versions between two
-- statements of a transaction.
create function remember_version() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
begin
  if old.changed_by is distinct from pg_current_xact_id() then
    -- ON CONFLICT would log each row twice.
    update public.connection_version set changed_at = old.changed_at
      where connection_id = old.id and data_version = old.data_version;
    if not found then
      insert into public.connection_version values (old.id, old.data_version, old.changed_at);
    end if;
  end if;
  return null;
end
$$;
revoke execute on function remember_version() from public;

-- A trigger before the update would lock the row once more, which PostgreSQL logs.
create trigger remember_version after update on connection
  for each row when (new.data_version > old.data_version)
  execute function remember_version();

-- Counts connections by the time since their last refresh: a metric of all apps, which row-level security hides from
-- the service. Ids are hashes, so 5,000 of them in a row are a random sample of constant cost. The session could choose
-- the values of random(), and so the ids of the sample.
create function sample_refreshes() returns table (refreshed text, connections bigint)
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  start bigint := (
    'x' || translate(left(gen_random_uuid()::text, 13), '-', '') || right(gen_random_uuid()::text, 4)
  )::bit(64)::bigint;
begin
  return query
    select
      case
        when c.refreshed_at is null then 'never'
        when c.refreshed_at > now() - interval '1 day' then '1d'
        when c.refreshed_at > now() - interval '2 days' then '2d'
        when c.refreshed_at > now() - interval '7 days' then '7d'
        else 'older'
      end,
      count(*)
    from (
      (select refreshed_at from public.connection where id >= start order by id limit 5000)
      union all
      (select refreshed_at from public.connection where id < start order by id limit 5000)
      limit 5000
    ) c
    group by 1;
end
$$;
revoke execute on function sample_refreshes() from public;
