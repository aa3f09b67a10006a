-- Reads the applied migrations, and one table without the right to read it.
select
  name,
  pg_is_in_recovery(),
  (
    select min(name)
    from
      unnest(
        '{app,app_token,connection,connection_version,portfolio_transaction,portfolio_transaction_month,portfolio_transaction_removal,account_transaction,account_transaction_month,account_transaction_removal,assets_transfer_order}'::text[]
      ) as expected (name)
    where not has_any_column_privilege(to_regclass('public.' || name), 'select')
  ) as denied
from public.kysely_migration
order by name
