-- Distributes the tables over the workers of a Citus cluster by connection, for a database that outgrows one
-- machine (docs/citus.md). Run it on the coordinator, on a database without rows, as the role that
-- migrated it:
--
--   psql "$DATABASE_URL" --single-transaction --set ON_ERROR_STOP=1 --file docs/reference/citus.sql
--
-- Names, keys, indexes, triggers, policies and rights do not change. A table gets 32 shards, the default of Citus. A
-- shard is on one worker, so there are at most as many workers as shards. Choose a multiple of the largest number of
-- workers that you plan, here 48, before the first row (docs/citus.md):
--
--   PGOPTIONS='-c citus.shard_count=48' psql …

-- The triggers write only rows of the same connection, so all their tables are on the same worker.
set citus.enable_unsafe_triggers = on;

select create_reference_table('app');
select create_reference_table('app_token');
-- A service may use any node: it checks the schema there.
select create_reference_table('kysely_migration');

do $$
declare
  filled boolean;
  tables text[];
  name text;
  foreign_keys text[];
  step text;
begin
  select exists (select from connection) into filled;
  if filled then
    raise exception 'table connection already has rows';
  end if;
  -- Citus distributes a table before the table that it references, so the foreign keys are created again.
  select array_agg(distinct conrelid::regclass::text),
      array_agg(format('alter table %s add constraint %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)))
    into tables, foreign_keys
    from pg_constraint where contype = 'f' and confrelid = 'connection'::regclass;
  for step in select format('alter table %s drop constraint %I', conrelid::regclass, conname)
      from pg_constraint where contype = 'f' and confrelid = 'connection'::regclass loop
    execute step;
  end loop;
  -- A unique index must have the column that distributes the table. `connection create` keeps the ids unique.
  drop index connection_external_id;
  create index connection_external_id on connection (app_id, external_id) where external_id is not null;
  perform create_distributed_table('connection', 'id');
  foreach name in array tables loop
    perform create_distributed_table(name, 'connection_id', colocate_with => 'connection');
  end loop;
  foreach step in array foreign_keys loop
    execute step;
  end loop;
end $$;

-- Citus makes the views of a table again when it distributes the table, without their rights.
grant select on portfolio_transaction_day, account_transaction_day to investment_service;
