-- Reads the applied migrations.
select name, pg_is_in_recovery()
from public.kysely_migration
order by name
