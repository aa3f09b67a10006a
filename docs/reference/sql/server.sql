-- Reads version, role and migrations of the server, and the rights of the login.
select
  current_setting('server_version'),
  pg_is_in_recovery(),
  (
    select
      rolsuper
      or rolbypassrls
      or pg_has_role(
        current_user,
        (select relowner from pg_class where oid = to_regclass('public.connection')),
        'usage'
      )
    from pg_roles
    where rolname = current_user
  ),
  string_agg(name, ',' order by name)
from public.kysely_migration
