-- Triggers of transfer orders: each statement gives a new version to the connections whose orders it changes, in the order
-- of ids. 0005-transaction-triggers.sql explains the settings and the time.

create or replace function assets_transfer_order_row_counts_after_insert() returns trigger
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
  for n in select connection_id from new_rows group by 1 order by 1 loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set data_version = data_version + 1, changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  return null;
end
$$;

create or replace function assets_transfer_order_row_counts_after_update() returns trigger
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
    select connection_id from (
      select connection_id from old_rows union all select connection_id from new_rows
    ) c
    group by 1 order by 1
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set data_version = data_version + 1, changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  return null;
end
$$;

create or replace function assets_transfer_order_row_counts_after_delete() returns trigger
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
  for n in select connection_id from old_rows group by 1 order by 1 loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set data_version = data_version + 1, changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  return null;
end
$$;

-- The trigger cannot see which connections had orders.
create or replace function assets_transfer_order_row_counts_after_truncate() returns trigger
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
  for n in select id as connection_id from public.connection order by id for no key update loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set data_version = data_version + 1, changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  return null;
end
$$;
