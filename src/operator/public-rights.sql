-- Statements that revoke from PUBLIC what docs/reference/public-rights.sql revokes.
select format('revoke temporary on database %I from public', datname) as text
from pg_database
where datname = current_database() and has_database_privilege('public', oid, 'temporary')
union all
select format('revoke execute on function %s from public', oid::regprocedure)
from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and has_function_privilege('public', oid, 'execute')
  and (proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message')
    or proname ~ '^pg_(try_)?advisory_(xact_)?lock')
order by 1
