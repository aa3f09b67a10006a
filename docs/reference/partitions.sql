-- Splits both transaction tables into hash partitions by connection, for a database that outgrows one table
-- (docs/scale.md). Run it on a migrated database without rows, as the role that migrated it:
--
--   psql "$DATABASE_URL" --single-transaction --set ON_ERROR_STOP=1 --file docs/reference/partitions.sql
--
-- Names, keys, indexes, triggers, policies and rights do not change. The number of partitions cannot be changed
-- later. 16 partitions cost requests up to 7 % of their rate (docs/decisions/experiments.md, "Partitions").

set partitions.count = 16;

do $$
declare
  partitions constant integer := current_setting('partitions.count');
  name text;
  again text[];
  step text;
  filled boolean;
begin
  foreach name in array array['portfolio_transaction', 'account_transaction'] loop
    execute format('select exists (select from %I)', name) into filled;
    if filled then
      raise exception 'table % already has rows', name;
    end if;

    -- LIKE does not copy these, or gives them other names.
    select array_agg(definition order by rank) into again from (
      select 1 as rank, format('alter table %I add constraint %I %s',
          name, conname, pg_get_constraintdef(oid)) as definition
        from pg_constraint where conrelid = name::regclass and contype in ('p', 'f')
      union all select 2, pg_get_indexdef(indexrelid)
        from pg_index where indrelid = name::regclass and not indisprimary
      union all select 3, pg_get_triggerdef(oid)
        from pg_trigger where tgrelid = name::regclass and not tgisinternal
      union all select 4, format('alter table %I enable row level security', name)
      union all select 5, format('create policy %I on %I for %s to %s using (%s)', polname, name,
          case polcmd when 'r' then 'select' else 'all' end, array_to_string(polroles::regrole[], ', '), pg_get_expr(polqual, polrelid))
        from pg_policy where polrelid = name::regclass
      union all select 6, format('grant %s on %I to %s', privilege_type, name, grantee::regrole)
        from pg_class, aclexplode(relacl) where pg_class.oid = name::regclass and grantee <> relowner
      union all select 7, format('grant %s (%I) on %I to %s', privilege_type, attname, name, grantee::regrole)
        from pg_attribute, aclexplode(attacl) where attrelid = name::regclass
    ) definitions;

    -- It counts the rows of this table by day, for instances of release 1.0.0.
    step := pg_get_viewdef((name || '_day')::regclass);
    execute format('drop view %I', name || '_day');
    again := again || format('create view %I with (security_invoker = true) as %s', name || '_day', step)
      || format('grant select on %I to investment_service', name || '_day');

    execute format('alter table %I rename to whole', name);
    execute format('create table %I (like whole including all excluding indexes)
      partition by hash (connection_id)', name);
    drop table whole;
    for number in 0 .. partitions - 1 loop
      execute format('create table %I partition of %I for values with (modulus %s, remainder %s)',
        name || '_' || number, name, partitions, number);
    end loop;
    foreach step in array again loop
      execute step;
    end loop;
  end loop;
end $$;
