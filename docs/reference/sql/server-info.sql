-- Reads the version of PostgreSQL, its role and the newest migration.
select current_setting('server_version'), pg_is_in_recovery(), max(name)
from public.kysely_migration
