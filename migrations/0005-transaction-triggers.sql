-- Triggers of a list of transactions. Migration 0005 applies this file twice: as it is, and with account_transaction instead
-- of portfolio_transaction, and movement_id instead of transaction_id.
--
-- The functions replace those of migration 0003. They run once a statement, and maintain in this order:
-- 1. Total and version in `connection`, in the order of ids. Writers of one connection then wait for each other, and
--    statements over several connections cannot deadlock. Change numbers become visible in ascending order.
-- 2. Change numbers: the version after the statement, and an ordinal in the low 31 bits. All rows between the lowest and
--    the highest number of the statement get new ones, because numbering a row again is correct. A join with the changed
--    rows could read all rows for each of them. Order and place of a row leave PostgreSQL one plan, with any statistics.
-- 3. Counts by month. The first day of a month is computed from the day: date_trunc() returns a timestamp in the time zone
--    of the session.
-- 4. Ids of removed rows.
--
-- PostgreSQL plans the statements of a function once a session, for the rows of its first call. Each statement must
-- therefore have a plan that fits any number of rows: no sequential scan, no sort, and no join with the changed rows.
--
-- They run with the rights of the owner. A role could add a function or an operator to the schema public that PostgreSQL
-- prefers to its own: search_path leaves out this schema.
--
-- A version needs another time than all before. Behind a clock that stepped back, two histories would add the same
-- microsecond. Random ones differ. Citus accepts neither a clock nor such a sum in an update.

create or replace function portfolio_transaction_row_counts_after_insert() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set jit = off
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set enable_indexscan = on
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  n record;
  places tid[];
  version bigint;
  time timestamptz;
  -- The session can choose the values of random(), but not those of gen_random_uuid().
  step interval := interval '1 microsecond' * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
begin
  -- Totals and versions, before the counts by month.
  for n in
    select connection_id, count(*) as delta, min(change_number) as low, max(change_number) as high,
      count(*) > count(distinct change_number) as doubled
    from new_rows
    group by 1 order by 1
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set portfolio_transactions = portfolio_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id
      returning data_version into version;
    -- The connection is deleted with its rows.
    continue when not found;
    -- All rows have numbers of the new version, as those of the import.
    continue when n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
    places := array(
      select ctid from public.portfolio_transaction
      where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
      order by change_number);
    -- Leave PostgreSQL one plan, also for partitions without statistics: it visits the places, and hashes their ordinals.
    perform set_config('enable_indexscan', 'off', true);
    perform set_config('enable_hashjoin', 'on', true);
    perform set_config('enable_nestloop', 'off', true);
    update public.portfolio_transaction t set change_number = version << 31 | o.ordinal
      from unnest(places) with ordinality o (place, ordinal)
      where t.connection_id = n.connection_id and t.ctid = any (places) and t.ctid = o.place
        and t.change_number <> version << 31 | o.ordinal;
    perform set_config('enable_indexscan', 'on', true);
    perform set_config('enable_hashjoin', 'off', true);
    perform set_config('enable_nestloop', 'on', true);
  end loop;

  -- In the order of months, so that PostgreSQL stores those of a connection next to each other.
  for n in
    select connection_id, effective_day - (extract(day from effective_day)::integer - 1) as month, count(*) as gained
    from new_rows
    group by 1, 2 order by 1, 2
  loop
    update public.portfolio_transaction_month set row_count = row_count + n.gained
      where connection_id = n.connection_id and first_day = n.month;
    if not found then
      insert into public.portfolio_transaction_month (connection_id, first_day, row_count)
        values (n.connection_id, n.month, n.gained);
    end if;
  end loop;
  return null;
end
$$;

create or replace function portfolio_transaction_row_counts_after_update() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set jit = off
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set enable_indexscan = on
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  n record;
  places tid[];
  version bigint;
  last bigint;
  ordinal bigint;
  time timestamptz;
  -- The session can choose the values of random(), but not those of gen_random_uuid().
  step interval := interval '1 microsecond' * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
begin
  -- An update that numbers rows is nested, and leaves no row with 0. A role without the right to change_number leaves 0 in
  -- each row that it updates (number_again), also in an update of its own trigger.
  if pg_trigger_depth() > 1 and not exists (select from new_rows where change_number = 0) then
    return null;
  end if;

  -- Totals and versions, before the counts by month.
  for n in
    select connection_id, sum(delta) as delta, min(number) as low, max(number) as high,
      count(number) > count(distinct number) as doubled
    from (
      select connection_id, effective_day, -1 as delta, null::bigint as number from old_rows
      union all
      select connection_id, effective_day, 1 as delta, change_number as number from new_rows
    ) c
    group by 1 order by 1
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set portfolio_transactions = portfolio_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id
      returning data_version into version;
    -- The connection is deleted with its rows.
    continue when not found;
    -- No row is left in this connection, or all have numbers of the new version, as those of the import.
    continue when n.low is null
      or n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
    places := array(
      select ctid from public.portfolio_transaction
      where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
      order by change_number);
    -- Leave PostgreSQL one plan, also for partitions without statistics: it visits the places, and hashes their ordinals.
    perform set_config('enable_indexscan', 'off', true);
    perform set_config('enable_hashjoin', 'on', true);
    perform set_config('enable_nestloop', 'off', true);
    update public.portfolio_transaction t set change_number = version << 31 | o.ordinal
      from unnest(places) with ordinality o (place, ordinal)
      where t.connection_id = n.connection_id and t.ctid = any (places) and t.ctid = o.place
        and t.change_number <> version << 31 | o.ordinal;
    perform set_config('enable_indexscan', 'on', true);
    perform set_config('enable_hashjoin', 'off', true);
    perform set_config('enable_nestloop', 'on', true);
  end loop;

  -- In the order of months, so that PostgreSQL stores those of a connection next to each other.
  for n in
    select connection_id, effective_day - (extract(day from effective_day)::integer - 1) as month, sum(delta) as gained
    from (
      select connection_id, effective_day, -1 as delta, null::bigint as number from old_rows
      union all
      select connection_id, effective_day, 1 as delta, change_number as number from new_rows
    ) c
    group by 1, 2 having sum(delta) > 0 order by 1, 2
  loop
    update public.portfolio_transaction_month set row_count = row_count + n.gained
      where connection_id = n.connection_id and first_day = n.month;
    if not found then
      insert into public.portfolio_transaction_month (connection_id, first_day, row_count)
        values (n.connection_id, n.month, n.gained);
    end if;
  end loop;

  for n in
    select connection_id, effective_day - (extract(day from effective_day)::integer - 1) as month, -sum(delta) as lost
    from (
      select connection_id, effective_day, -1 as delta, null::bigint as number from old_rows
      union all
      select connection_id, effective_day, 1 as delta, change_number as number from new_rows
    ) c
    group by 1, 2 having sum(delta) < 0
  loop
    -- A month without rows has no count.
    delete from public.portfolio_transaction_month
      where connection_id = n.connection_id and first_day = n.month and row_count = n.lost;
    if not found then
      update public.portfolio_transaction_month set row_count = row_count - n.lost
        where connection_id = n.connection_id and first_day = n.month;
    end if;
  end loop;

  -- The ordinals of removals follow those of any rows with the same version.
  for n in
    select connection_id, transaction_id from old_rows
    except
    select connection_id, transaction_id from new_rows
    order by 1
  loop
    if n.connection_id is distinct from last then
      last := n.connection_id;
      ordinal := 1 << 30;
      select data_version into version from public.connection where id = last;
    end if;
    continue when version is null;
    ordinal := ordinal + 1;
    insert into public.portfolio_transaction_removal (connection_id, change_number, transaction_id)
      values (last, version << 31 | ordinal, n.transaction_id);
  end loop;
  return null;
end
$$;

create or replace function portfolio_transaction_row_counts_after_delete() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set jit = off
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set enable_indexscan = on
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  n record;
  version bigint;
  last bigint;
  ordinal bigint;
  time timestamptz;
  -- The session can choose the values of random(), but not those of gen_random_uuid().
  step interval := interval '1 microsecond' * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
begin
  -- Totals and versions, before the counts by month.
  for n in
    select connection_id, -count(*) as delta from old_rows group by 1 order by 1
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set portfolio_transactions = portfolio_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;

  for n in
    select connection_id, effective_day - (extract(day from effective_day)::integer - 1) as month, count(*) as lost
    from old_rows
    group by 1, 2
  loop
    -- A month without rows has no count.
    delete from public.portfolio_transaction_month
      where connection_id = n.connection_id and first_day = n.month and row_count = n.lost;
    if not found then
      update public.portfolio_transaction_month set row_count = row_count - n.lost
        where connection_id = n.connection_id and first_day = n.month;
    end if;
  end loop;

  -- The ordinals of removals follow those of any rows with the same version.
  for n in
    select connection_id, transaction_id from old_rows order by 1
  loop
    if n.connection_id is distinct from last then
      last := n.connection_id;
      ordinal := 1 << 30;
      select data_version into version from public.connection where id = last;
    end if;
    continue when version is null;
    ordinal := ordinal + 1;
    insert into public.portfolio_transaction_removal (connection_id, change_number, transaction_id)
      values (last, version << 31 | ordinal, n.transaction_id);
  end loop;
  return null;
end
$$;

-- A trigger of TRUNCATE cannot see which rows were removed, so it also moves the horizon of changes.
create or replace function portfolio_transaction_row_counts_after_truncate() returns trigger
  language plpgsql security definer
  set search_path = pg_catalog, pg_temp
  set jit = off
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set enable_indexscan = on
  set enable_hashjoin = off
  set enable_mergejoin = off
as $$
declare
  n record;
  time timestamptz;
  -- The session can choose the values of random(), but not those of gen_random_uuid().
  step interval := interval '1 microsecond' * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
begin
  for n in
    select id as connection_id from public.connection where portfolio_transactions > 0 order by id for no key update
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set portfolio_transactions = 0, change_horizon = (data_version + 1) << 31, data_version = data_version + 1,
        changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  -- TRUNCATE could deadlock with a reader that has locked the counts and waits for the rows.
  delete from public.portfolio_transaction_month;
  return null;
end
$$;

-- Works around an error of PostgreSQL 15 to 18. On a partitioned table, MERGE that inserts a row and then updates others
-- shows the inserted row to the trigger after UPDATE, instead of the updated rows. PostgreSQL does not keep the inserted row
-- for the triggers if the table has a trigger before INSERT. The condition is false: PostgreSQL never calls the function.
create trigger portfolio_transaction_merge before insert on portfolio_transaction
  for each row when (false) execute function number_again();

-- A view instead of the table of counts by day, which took a sixth of the space of the rows. An index counts the rows of a
-- day as fast. Instances of release 1.0.0 read it until they are replaced.
drop table portfolio_transaction_day;
create view portfolio_transaction_day with (security_invoker = true) as
  select connection_id, effective_day, count(*)::integer as row_count
  from portfolio_transaction
  group by connection_id, effective_day;
