-- Reads version, role and migrations of the server, and the rights of the login.
prepare server as
select
  current_setting('server_version'),
  pg_is_in_recovery(),
  not row_security_active(to_regclass('public.connection')),
  string_agg(name, ',' order by name)
from public.kysely_migration;
