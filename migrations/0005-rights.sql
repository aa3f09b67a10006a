-- Rights of the service on what this migration adds, and the role of pipelines that write by SQL. That role writes rows of
-- the three lists, and new connections. It neither reads the hash of a token, nor writes what the triggers maintain:
-- counts, versions and change numbers.

grant select (refreshed_at) on connection to investment_service;
grant execute on function sample_refreshes() to investment_service;
grant select on portfolio_transaction_day, account_transaction_day, connection_version to investment_service;

alter table connection_version enable row level security;
create policy of_the_connection on connection_version for select to investment_service
  using (connection_id = nullif(current_setting('service.connection_id', true), '')::bigint);

-- A role belongs to the whole server. Another database's migration or an administrator may have created it, or may
-- create it at this moment.
do $$ begin
  if not exists (select from pg_roles where rolname = 'investment_writer') then
    create role investment_writer nologin;
  end if;
exception when duplicate_object or unique_violation then null;
end $$;

grant select, delete,
  insert (
    connection_id, transaction_id, portfolio_id, type, exchange_rate, titles, amount, amount_base_currency, commission,
    taxes, price, currency, local_currency, description, operation_date_day, original_operation_date_day,
    value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour,
    original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment, related_transaction,
    retention_from, retention_to),
  update (
    connection_id, transaction_id, portfolio_id, type, exchange_rate, titles, amount, amount_base_currency, commission,
    taxes, price, currency, local_currency, description, operation_date_day, original_operation_date_day,
    value_date_day, original_value_date_day, operation_date_hour, original_operation_date_hour, value_date_hour,
    original_value_date_hour, original_operation_date_tz, original_value_date_tz, investment, related_transaction,
    retention_from, retention_to)
  on portfolio_transaction to investment_writer;

grant select, delete,
  insert (
    connection_id, movement_id, account_id, type, amount, exchange_rate, commission, taxes, currency, local_currency,
    description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day,
    operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour,
    original_operation_date_tz, original_value_date_tz, investment),
  update (
    connection_id, movement_id, account_id, type, amount, exchange_rate, commission, taxes, currency, local_currency,
    description, operation_date_day, original_operation_date_day, value_date_day, original_value_date_day,
    operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour,
    original_operation_date_tz, original_value_date_tz, investment)
  on account_transaction to investment_writer;

grant select, delete,
  insert (
    connection_id, id, portfolio, investment, name, isin, currency, asset_type, titles, amount, total, marketer_name,
    marketer_cif, management_company_name, management_company_cif, completed_at),
  update (
    connection_id, id, portfolio, investment, name, isin, currency, asset_type, titles, amount, total, marketer_name,
    marketer_cif, management_company_name, management_company_cif, completed_at)
  on assets_transfer_order to investment_writer;

grant
  select (id, app_id, label, external_id, created_at, changed_at, data_version, refreshed_at),
  insert (id, app_id, token_hash, label, external_id),
  update (label, external_id, refreshed_at)
  on connection to investment_writer;

grant select (id, name) on app to investment_writer;

create policy of_the_writer on portfolio_transaction for all to investment_writer using (true);
create policy of_the_writer on account_transaction for all to investment_writer using (true);
create policy of_the_writer on assets_transfer_order for all to investment_writer using (true);
create policy of_the_writer on connection for all to investment_writer using (true);
create policy of_the_writer on app for all to investment_writer using (true);
