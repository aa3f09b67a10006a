-- Revokes from PUBLIC what every role of a new database may do, and what the service does not need. A superuser runs it in the
-- database. A dump, another database and another server do not have its result: run it there, too.
-- `operator verify --hardened` finds what is missing.
do $$ declare name text; begin
  execute format('revoke temporary on database %I from public', current_database());
  for name in
    select oid::regprocedure from pg_proc where pronamespace = 'pg_catalog'::regnamespace
      and (proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message')
        or proname ~ '^pg_(try_)?advisory_(xact_)?lock')
  loop execute format('revoke execute on function %s from public', name); end loop;
end $$;
