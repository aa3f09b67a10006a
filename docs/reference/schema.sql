-- The schema after all migrations, as the catalog of PostgreSQL has it. This file is documentation: the files of
-- migrations/ create the schema.

create domain account_transaction_type as text CHECK ((VALUE = ANY (ARRAY['COUPON'::text, 'DEPOSIT'::text, 'DIVIDENDS'::text, 'DIVIDEND_RETENTION'::text, 'DIVIDEND_RETENTION_REFUND'::text, 'FEES'::text, 'FEES_REFUND'::text, 'FOREX_DEPOSIT'::text, 'FOREX_WITHDRAWAL'::text, 'GIFT'::text, 'INTEREST'::text, 'INTEREST_CHARGE'::text, 'RETURN_ON_CAPITAL'::text, 'TAXES'::text, 'TAX_REFUND'::text, 'WITHDRAWAL'::text, 'UNKNOWN'::text])));

create domain calendar_day as date CHECK (((VALUE >= '0001-01-01'::date) AND (VALUE <= '9999-12-31'::date)));

create domain exact_decimal as numeric CHECK (((abs(VALUE) < '100000000000000000000000000000000000000'::numeric) AND (scale(VALUE) <= 38)));

create domain long_text as text CHECK ((char_length(VALUE) <= 10000));

create domain portfolio_transaction_type as text CHECK ((VALUE = ANY (ARRAY['BUY'::text, 'COMPENSATION'::text, 'COUPON'::text, 'DELISTING'::text, 'DIVIDENDS'::text, 'EXPIRATION'::text, 'INHERITANCE_OR_DONATION_TRANSFER_IN'::text, 'INHERITANCE_OR_DONATION_TRANSFER_OUT'::text, 'ISIN_CHANGE_BUY'::text, 'ISIN_CHANGE_SELL'::text, 'MERGER_BUY'::text, 'MERGER_SELL'::text, 'OFF_MARKET_BUY'::text, 'OFF_MARKET_SELL'::text, 'PRODUCT_CHANGE_BUY'::text, 'PRODUCT_CHANGE_SELL'::text, 'RIGHTS_CONVERSION_BUY'::text, 'RIGHTS_CONVERSION_SELL'::text, 'RIGHTS_EXCLUSION'::text, 'RIGHTS_ISSUE'::text, 'SELL'::text, 'SHARE_ISSUE_PREMIUM'::text, 'SPINOFF'::text, 'SPLIT_BUY'::text, 'SPLIT_SELL'::text, 'TRANSFER_IN'::text, 'TRANSFER_OUT'::text, 'UNKNOWN'::text])));

create domain short_text as text CHECK ((char_length(VALUE) <= 255));

create domain token_hash as bytea CHECK ((octet_length(VALUE) = 32));

create table account_transaction (
  connection_id bigint not null,
  movement_id uuid not null,
  account_id uuid not null,
  type account_transaction_type not null,
  amount exact_decimal not null,
  exchange_rate exact_decimal,
  commission exact_decimal,
  taxes exact_decimal,
  currency short_text,
  local_currency short_text,
  description long_text,
  operation_date_day calendar_day,
  original_operation_date_day calendar_day,
  value_date_day calendar_day,
  original_value_date_day calendar_day,
  operation_date_hour short_text,
  original_operation_date_hour short_text,
  value_date_hour short_text,
  original_value_date_hour short_text,
  original_operation_date_tz short_text,
  original_value_date_tz short_text,
  effective_day date generated always as (COALESCE(operation_date_day, value_date_day)) stored,
  investment uuid,
  change_number bigint default 0 not null
);

create table account_transaction_month (
  connection_id bigint not null,
  first_day date not null,
  row_count integer not null
) with (fillfactor=80);

create table account_transaction_removal (
  connection_id bigint not null,
  change_number bigint not null,
  movement_id uuid not null,
  removed_at timestamp with time zone default now() not null
);

create table app (
  id uuid default gen_random_uuid() not null,
  name text not null,
  client_id text,
  created_at timestamp with time zone default now() not null
);

create table app_token (
  id uuid default gen_random_uuid() not null,
  app_id uuid not null,
  token_hash token_hash not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone
);

create table assets_transfer_order (
  connection_id bigint not null,
  id uuid not null,
  portfolio short_text,
  investment uuid,
  name short_text,
  isin short_text,
  currency short_text,
  asset_type short_text,
  titles exact_decimal,
  amount exact_decimal,
  total boolean,
  marketer_name short_text,
  marketer_cif short_text,
  management_company_name short_text,
  management_company_cif short_text,
  completed_at timestamp with time zone
);

create table connection (
  id bigint not null,
  app_id uuid not null,
  token_hash token_hash not null,
  label text,
  created_at timestamp with time zone default now() not null,
  portfolio_transactions bigint default 0 not null,
  account_transactions bigint default 0 not null,
  data_version bigint default 0 not null,
  changed_at timestamp with time zone default now() not null,
  change_horizon bigint default 0 not null,
  refreshed_at timestamp with time zone,
  external_id text,
  changed_by xid8
) with (fillfactor=70);

create table connection_version (
  connection_id bigint not null,
  data_version bigint not null,
  changed_at timestamp with time zone not null
);

create table portfolio_transaction (
  connection_id bigint not null,
  transaction_id uuid not null,
  portfolio_id uuid not null,
  type portfolio_transaction_type not null,
  exchange_rate exact_decimal,
  titles exact_decimal,
  amount exact_decimal,
  amount_base_currency exact_decimal,
  commission exact_decimal,
  taxes exact_decimal,
  price exact_decimal,
  currency short_text,
  local_currency short_text,
  description long_text,
  operation_date_day calendar_day,
  original_operation_date_day calendar_day,
  value_date_day calendar_day,
  original_value_date_day calendar_day,
  operation_date_hour short_text,
  original_operation_date_hour short_text,
  value_date_hour short_text,
  original_value_date_hour short_text,
  original_operation_date_tz short_text,
  original_value_date_tz short_text,
  effective_day date generated always as (COALESCE(operation_date_day, value_date_day)) stored,
  investment uuid,
  related_transaction uuid,
  retention_from exact_decimal,
  retention_to exact_decimal,
  change_number bigint default 0 not null
);

create table portfolio_transaction_month (
  connection_id bigint not null,
  first_day date not null,
  row_count integer not null
) with (fillfactor=80);

create table portfolio_transaction_removal (
  connection_id bigint not null,
  change_number bigint not null,
  transaction_id uuid not null,
  removed_at timestamp with time zone default now() not null
);

alter table account_transaction add constraint account_transaction_pkey PRIMARY KEY (connection_id, movement_id);

alter table account_transaction add constraint one_date CHECK (((operation_date_day IS NOT NULL) OR (value_date_day IS NOT NULL)));

alter table account_transaction_month add constraint account_transaction_month_pkey PRIMARY KEY (connection_id, first_day);

alter table account_transaction_month add constraint account_transaction_month_row_count_check CHECK ((row_count > 0));

alter table account_transaction_removal add constraint account_transaction_removal_pkey PRIMARY KEY (connection_id, change_number);

alter table app add constraint app_client_id_check CHECK (((client_id <> ''::text) AND (char_length(client_id) <= 255)));

alter table app add constraint app_client_id_key UNIQUE (client_id);

alter table app add constraint app_name_check CHECK (((name <> ''::text) AND (char_length(name) <= 255)));

alter table app add constraint app_name_key UNIQUE (name);

alter table app add constraint app_pkey PRIMARY KEY (id);

alter table app_token add constraint app_token_pkey PRIMARY KEY (id);

alter table app_token add constraint app_token_token_hash_key UNIQUE (token_hash);

alter table assets_transfer_order add constraint assets_transfer_order_pkey PRIMARY KEY (connection_id, id);

alter table assets_transfer_order add constraint completed_in_years CHECK (((completed_at >= '0001-01-01 00:00:00+00'::timestamp with time zone) AND (completed_at < '10000-01-01 00:00:00+00'::timestamp with time zone)));

alter table assets_transfer_order add constraint management_company_whole CHECK (((management_company_name IS NULL) = (management_company_cif IS NULL)));

alter table assets_transfer_order add constraint marketer_whole CHECK (((marketer_name IS NULL) = (marketer_cif IS NULL)));

alter table connection add constraint changed_in_years CHECK (((changed_at >= '0001-01-01 00:00:00+00'::timestamp with time zone) AND (changed_at < '10000-01-01 00:00:00+00'::timestamp with time zone)));

alter table connection add constraint connection_account_transactions_check CHECK ((account_transactions >= 0));

alter table connection add constraint connection_external_id_check CHECK (((external_id <> ''::text) AND (char_length(external_id) <= 255)));

alter table connection add constraint connection_key CHECK ((id = ((('x'::text || encode(SUBSTRING(token_hash FROM 1 FOR 8), 'hex'::text)))::bit(64))::bigint));

alter table connection add constraint connection_label_check CHECK ((char_length(label) <= 255));

alter table connection add constraint connection_pkey PRIMARY KEY (id) INCLUDE (app_id, created_at);

alter table connection add constraint connection_portfolio_transactions_check CHECK ((portfolio_transactions >= 0));

alter table connection add constraint refreshed_in_years CHECK (((refreshed_at >= '0001-01-01 00:00:00+00'::timestamp with time zone) AND (refreshed_at < '10000-01-01 00:00:00+00'::timestamp with time zone)));

alter table connection_version add constraint connection_version_pkey PRIMARY KEY (connection_id, data_version);

alter table portfolio_transaction add constraint one_date CHECK (((operation_date_day IS NOT NULL) OR (value_date_day IS NOT NULL)));

alter table portfolio_transaction add constraint portfolio_transaction_pkey PRIMARY KEY (connection_id, transaction_id);

alter table portfolio_transaction add constraint retention_detail_whole CHECK (((retention_from IS NULL) = (retention_to IS NULL)));

alter table portfolio_transaction_month add constraint portfolio_transaction_month_pkey PRIMARY KEY (connection_id, first_day);

alter table portfolio_transaction_month add constraint portfolio_transaction_month_row_count_check CHECK ((row_count > 0));

alter table portfolio_transaction_removal add constraint portfolio_transaction_removal_pkey PRIMARY KEY (connection_id, change_number);

alter table account_transaction add constraint account_transaction_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table account_transaction_month add constraint account_transaction_month_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table account_transaction_removal add constraint account_transaction_removal_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table app_token add constraint app_token_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE;

alter table assets_transfer_order add constraint assets_transfer_order_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table connection add constraint connection_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(id) ON DELETE CASCADE;

alter table connection_version add constraint connection_version_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table portfolio_transaction add constraint portfolio_transaction_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table portfolio_transaction_month add constraint portfolio_transaction_month_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

alter table portfolio_transaction_removal add constraint portfolio_transaction_removal_connection_id_fkey FOREIGN KEY (connection_id) REFERENCES connection(id) ON DELETE CASCADE;

CREATE INDEX account_transaction_changes ON account_transaction USING btree (connection_id, change_number);

CREATE INDEX account_transaction_list ON account_transaction USING btree (connection_id, effective_day DESC, operation_date_hour DESC NULLS LAST, movement_id DESC);

CREATE INDEX app_token_app ON app_token USING btree (app_id);

CREATE INDEX assets_transfer_order_list ON assets_transfer_order USING btree (connection_id, completed_at DESC, id DESC) WHERE (completed_at IS NOT NULL);

CREATE UNIQUE INDEX connection_external_id ON connection USING btree (app_id, external_id) WHERE (external_id IS NOT NULL);

CREATE UNIQUE INDEX connection_lookup ON connection USING btree (app_id, id);

CREATE INDEX portfolio_transaction_changes ON portfolio_transaction USING btree (connection_id, change_number);

CREATE INDEX portfolio_transaction_list ON portfolio_transaction USING btree (connection_id, effective_day DESC, operation_date_hour DESC NULLS LAST, transaction_id DESC);

CREATE OR REPLACE FUNCTION public.account_transaction_row_counts_after_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
      set account_transactions = account_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;

  for n in
    select connection_id, effective_day - (extract(day from effective_day)::integer - 1) as month, count(*) as lost
    from old_rows
    group by 1, 2
  loop
    -- A month without rows has no count.
    delete from public.account_transaction_month
      where connection_id = n.connection_id and first_day = n.month and row_count = n.lost;
    if not found then
      update public.account_transaction_month set row_count = row_count - n.lost
        where connection_id = n.connection_id and first_day = n.month;
    end if;
  end loop;

  -- The ordinals of removals follow those of any rows with the same version.
  for n in
    select connection_id, movement_id from old_rows order by 1
  loop
    if n.connection_id is distinct from last then
      last := n.connection_id;
      ordinal := 1 << 30;
      select data_version into version from public.connection where id = last;
    end if;
    continue when version is null;
    ordinal := ordinal + 1;
    insert into public.account_transaction_removal (connection_id, change_number, movement_id)
      values (last, version << 31 | ordinal, n.movement_id);
  end loop;
  return null;
end
$function$
;

CREATE OR REPLACE FUNCTION public.account_transaction_row_counts_after_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
      set account_transactions = account_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id
      returning data_version into version;
    -- The connection is deleted with its rows.
    continue when not found;
    -- All rows have numbers of the new version, as those of the import.
    continue when n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
    places := array(
      select ctid from public.account_transaction
      where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
      order by change_number);
    -- Leave PostgreSQL one plan, also for partitions without statistics: it visits the places, and hashes their ordinals.
    perform set_config('enable_indexscan', 'off', true);
    perform set_config('enable_hashjoin', 'on', true);
    perform set_config('enable_nestloop', 'off', true);
    update public.account_transaction t set change_number = version << 31 | o.ordinal
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
    update public.account_transaction_month set row_count = row_count + n.gained
      where connection_id = n.connection_id and first_day = n.month;
    if not found then
      insert into public.account_transaction_month (connection_id, first_day, row_count)
        values (n.connection_id, n.month, n.gained);
    end if;
  end loop;
  return null;
end
$function$
;

CREATE OR REPLACE FUNCTION public.account_transaction_row_counts_after_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
declare
  n record;
  time timestamptz;
  -- The session can choose the values of random(), but not those of gen_random_uuid().
  step interval := interval '1 microsecond' * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
begin
  for n in
    select id as connection_id from public.connection where account_transactions > 0 order by id for no key update
  loop
    select changed_at into time from public.connection where id = n.connection_id for no key update;
    time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
    update public.connection
      set account_transactions = 0, change_horizon = (data_version + 1) << 31, data_version = data_version + 1,
        changed_at = time, changed_by = pg_current_xact_id()
      where id = n.connection_id;
  end loop;
  -- TRUNCATE could deadlock with a reader that has locked the counts and waits for the rows.
  delete from public.account_transaction_month;
  return null;
end
$function$
;

CREATE OR REPLACE FUNCTION public.account_transaction_row_counts_after_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
      set account_transactions = account_transactions + n.delta, data_version = data_version + 1, changed_at = time,
        changed_by = pg_current_xact_id()
      where id = n.connection_id
      returning data_version into version;
    -- The connection is deleted with its rows.
    continue when not found;
    -- No row is left in this connection, or all have numbers of the new version, as those of the import.
    continue when n.low is null
      or n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
    places := array(
      select ctid from public.account_transaction
      where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
      order by change_number);
    -- Leave PostgreSQL one plan, also for partitions without statistics: it visits the places, and hashes their ordinals.
    perform set_config('enable_indexscan', 'off', true);
    perform set_config('enable_hashjoin', 'on', true);
    perform set_config('enable_nestloop', 'off', true);
    update public.account_transaction t set change_number = version << 31 | o.ordinal
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
    update public.account_transaction_month set row_count = row_count + n.gained
      where connection_id = n.connection_id and first_day = n.month;
    if not found then
      insert into public.account_transaction_month (connection_id, first_day, row_count)
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
    delete from public.account_transaction_month
      where connection_id = n.connection_id and first_day = n.month and row_count = n.lost;
    if not found then
      update public.account_transaction_month set row_count = row_count - n.lost
        where connection_id = n.connection_id and first_day = n.month;
    end if;
  end loop;

  -- The ordinals of removals follow those of any rows with the same version.
  for n in
    select connection_id, movement_id from old_rows
    except
    select connection_id, movement_id from new_rows
    order by 1
  loop
    if n.connection_id is distinct from last then
      last := n.connection_id;
      ordinal := 1 << 30;
      select data_version into version from public.connection where id = last;
    end if;
    continue when version is null;
    ordinal := ordinal + 1;
    insert into public.account_transaction_removal (connection_id, change_number, movement_id)
      values (last, version << 31 | ordinal, n.movement_id);
  end loop;
  return null;
end
$function$
;

CREATE OR REPLACE FUNCTION public.assets_transfer_order_row_counts_after_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.assets_transfer_order_row_counts_after_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.assets_transfer_order_row_counts_after_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.assets_transfer_order_row_counts_after_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.number_again()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin new.change_number := 0; return new; end $function$
;

CREATE OR REPLACE FUNCTION public.portfolio_transaction_row_counts_after_delete()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.portfolio_transaction_row_counts_after_insert()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.portfolio_transaction_row_counts_after_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.portfolio_transaction_row_counts_after_update()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET jit TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.remember_version()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
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
$function$
;

CREATE OR REPLACE FUNCTION public.sample_refreshes()
 RETURNS TABLE(refreshed text, connections bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
$function$
;

CREATE TRIGGER account_transaction_merge BEFORE INSERT ON account_transaction FOR EACH ROW WHEN (false) EXECUTE FUNCTION number_again();

CREATE TRIGGER account_transaction_number_again BEFORE UPDATE ON account_transaction FOR EACH ROW WHEN (((new.change_number = old.change_number) AND (old.change_number <> 0))) EXECUTE FUNCTION number_again();

CREATE TRIGGER account_transaction_row_counts_after_delete AFTER DELETE ON account_transaction REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION account_transaction_row_counts_after_delete();

CREATE TRIGGER account_transaction_row_counts_after_insert AFTER INSERT ON account_transaction REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION account_transaction_row_counts_after_insert();

CREATE TRIGGER account_transaction_row_counts_after_truncate AFTER TRUNCATE ON account_transaction FOR EACH STATEMENT EXECUTE FUNCTION account_transaction_row_counts_after_truncate();

CREATE TRIGGER account_transaction_row_counts_after_update AFTER UPDATE ON account_transaction REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION account_transaction_row_counts_after_update();

CREATE TRIGGER assets_transfer_order_row_counts_after_delete AFTER DELETE ON assets_transfer_order REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION assets_transfer_order_row_counts_after_delete();

CREATE TRIGGER assets_transfer_order_row_counts_after_insert AFTER INSERT ON assets_transfer_order REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION assets_transfer_order_row_counts_after_insert();

CREATE TRIGGER assets_transfer_order_row_counts_after_truncate AFTER TRUNCATE ON assets_transfer_order FOR EACH STATEMENT EXECUTE FUNCTION assets_transfer_order_row_counts_after_truncate();

CREATE TRIGGER assets_transfer_order_row_counts_after_update AFTER UPDATE ON assets_transfer_order REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION assets_transfer_order_row_counts_after_update();

CREATE TRIGGER remember_version AFTER UPDATE ON connection FOR EACH ROW WHEN ((new.data_version > old.data_version)) EXECUTE FUNCTION remember_version();

CREATE TRIGGER portfolio_transaction_merge BEFORE INSERT ON portfolio_transaction FOR EACH ROW WHEN (false) EXECUTE FUNCTION number_again();

CREATE TRIGGER portfolio_transaction_number_again BEFORE UPDATE ON portfolio_transaction FOR EACH ROW WHEN (((new.change_number = old.change_number) AND (old.change_number <> 0))) EXECUTE FUNCTION number_again();

CREATE TRIGGER portfolio_transaction_row_counts_after_delete AFTER DELETE ON portfolio_transaction REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION portfolio_transaction_row_counts_after_delete();

CREATE TRIGGER portfolio_transaction_row_counts_after_insert AFTER INSERT ON portfolio_transaction REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION portfolio_transaction_row_counts_after_insert();

CREATE TRIGGER portfolio_transaction_row_counts_after_truncate AFTER TRUNCATE ON portfolio_transaction FOR EACH STATEMENT EXECUTE FUNCTION portfolio_transaction_row_counts_after_truncate();

CREATE TRIGGER portfolio_transaction_row_counts_after_update AFTER UPDATE ON portfolio_transaction REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION portfolio_transaction_row_counts_after_update();

create policy of_the_connection on account_transaction as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_writer on account_transaction as permissive for all to investment_writer using (true);

create policy of_the_connection on account_transaction_month as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_connection on account_transaction_removal as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy look_up_by_client_id on app as permissive for select to investment_service using ((client_id = current_setting('service.client_id'::text, true)));

create policy of_the_writer on app as permissive for all to investment_writer using (true);

create policy look_up_by_hash on app_token as permissive for select to investment_service using (((token_hash)::bytea = decode(current_setting('service.token_hash'::text, true), 'hex'::text)));

create policy of_the_connection on assets_transfer_order as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_writer on assets_transfer_order as permissive for all to investment_writer using (true);

create policy of_the_calling_app on connection as permissive for select to investment_service using (((app_id = (NULLIF(current_setting('service.app_id'::text, true), ''::text))::uuid) AND ((token_hash)::bytea = decode(current_setting('service.connection_hash'::text, true), 'hex'::text))));

create policy of_the_writer on connection as permissive for all to investment_writer using (true);

create policy of_the_connection on connection_version as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_connection on portfolio_transaction as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_writer on portfolio_transaction as permissive for all to investment_writer using (true);

create policy of_the_connection on portfolio_transaction_month as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

create policy of_the_connection on portfolio_transaction_removal as permissive for select to investment_service using ((connection_id = (NULLIF(current_setting('service.connection_id'::text, true), ''::text))::bigint));

alter table account_transaction enable row level security;

alter table account_transaction_month enable row level security;

alter table account_transaction_removal enable row level security;

alter table app enable row level security;

alter table app_token enable row level security;

alter table assets_transfer_order enable row level security;

alter table connection enable row level security;

alter table connection_version enable row level security;

alter table portfolio_transaction enable row level security;

alter table portfolio_transaction_month enable row level security;

alter table portfolio_transaction_removal enable row level security;

revoke execute on function account_transaction_row_counts_after_delete() from public;

revoke execute on function account_transaction_row_counts_after_insert() from public;

revoke execute on function account_transaction_row_counts_after_truncate() from public;

revoke execute on function account_transaction_row_counts_after_update() from public;

revoke execute on function assets_transfer_order_row_counts_after_delete() from public;

revoke execute on function assets_transfer_order_row_counts_after_insert() from public;

revoke execute on function assets_transfer_order_row_counts_after_truncate() from public;

revoke execute on function assets_transfer_order_row_counts_after_update() from public;

revoke execute on function number_again() from public;

revoke execute on function portfolio_transaction_row_counts_after_delete() from public;

revoke execute on function portfolio_transaction_row_counts_after_insert() from public;

revoke execute on function portfolio_transaction_row_counts_after_truncate() from public;

revoke execute on function portfolio_transaction_row_counts_after_update() from public;

revoke execute on function remember_version() from public;

revoke execute on function sample_refreshes() from public;

grant execute on function sample_refreshes() to investment_service;

grant select on table account_transaction to investment_service;

grant delete on table account_transaction to investment_writer;

grant insert (connection_id, movement_id, account_id, type, amount, exchange_rate, commission, taxes, currency, local_currency, description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment) on table account_transaction to investment_writer;

grant select on table account_transaction to investment_writer;

grant update (connection_id, movement_id, account_id, type, amount, exchange_rate, commission, taxes, currency, local_currency, description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment) on table account_transaction to investment_writer;

grant select on table account_transaction_month to investment_service;

grant select on table account_transaction_removal to investment_service;

grant select (id, client_id) on table app to investment_service;

grant select (id, name) on table app to investment_writer;

grant select (app_id, token_hash, expires_at, revoked_at) on table app_token to investment_service;

grant select on table assets_transfer_order to investment_service;

grant delete on table assets_transfer_order to investment_writer;

grant insert (connection_id, id, portfolio, investment, name, isin, currency, asset_type, titles, amount, total, marketer_name, marketer_cif, management_company_name, management_company_cif, completed_at) on table assets_transfer_order to investment_writer;

grant select on table assets_transfer_order to investment_writer;

grant update (connection_id, id, portfolio, investment, name, isin, currency, asset_type, titles, amount, total, marketer_name, marketer_cif, management_company_name, management_company_cif, completed_at) on table assets_transfer_order to investment_writer;

grant select (id, app_id, token_hash, portfolio_transactions, account_transactions, data_version, changed_at, change_horizon, refreshed_at) on table connection to investment_service;

grant insert (id, app_id, token_hash, label, external_id) on table connection to investment_writer;

grant select (id, app_id, label, created_at, data_version, changed_at, refreshed_at, external_id) on table connection to investment_writer;

grant update (label, refreshed_at, external_id) on table connection to investment_writer;

grant select on table connection_version to investment_service;

grant select on table portfolio_transaction to investment_service;

grant delete on table portfolio_transaction to investment_writer;

grant insert (connection_id, transaction_id, portfolio_id, type, exchange_rate, titles, amount, amount_base_currency, commission, taxes, price, currency, local_currency, description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment, related_transaction, retention_from, retention_to) on table portfolio_transaction to investment_writer;

grant select on table portfolio_transaction to investment_writer;

grant update (connection_id, transaction_id, portfolio_id, type, exchange_rate, titles, amount, amount_base_currency, commission, taxes, price, currency, local_currency, description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment, related_transaction, retention_from, retention_to) on table portfolio_transaction to investment_writer;

grant select on table portfolio_transaction_month to investment_service;

grant select on table portfolio_transaction_removal to investment_service;
