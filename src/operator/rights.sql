-- Finds the statements that migrations and the role of the service need in this database, by their kind:
-- role     create roles that are missing, if this role may not create them (migrations do otherwise)
-- schema   PUBLIC may create objects in the schema public, as in databases of PostgreSQL 14 and earlier
-- foreign  functions and operators of other roles in this schema, which PostgreSQL may prefer to its own
-- needed   settings and rights of the role of the service
-- excess   rights of PUBLIC that the role of the service does not need, and this role may revoke
-- shared   the same, but other applications may use them: the database has tables of another owner
-- $1: settings of the sessions of the role, as a JSON object
with service as (
  select oid, rolname as name from pg_roles where rolname = 'investment_service'
), database as (
  select oid, datname as name, exists (
      select from pg_class
      where relkind in ('r', 'p') and relpersistence <> 't' and oid >= 16384
        and relowner <> (select relowner from pg_class where oid = to_regclass('public.kysely_migration'))
    ) as is_shared
  from pg_database where datname = current_database()
)
select 'role' as kind, format('create role %s', role.name) as statement
from unnest(array['investment_service', 'investment_writer']) role (name)
where not exists (select from pg_roles where rolname = role.name)
  and not (select rolsuper or rolcreaterole from pg_roles where rolname = current_user)
union all
select 'schema', 'revoke create on schema public from public'
where has_schema_privilege('public', 'public', 'create')
union all
select 'foreign', format('%s%s of %s', o.kind, o.name, owner.rolname)
from (
  select '' as kind, oid::regprocedure::text as name, proowner as owner
  from pg_proc where pronamespace = 'public'::regnamespace
  union all
  select 'operator ', oid::regoperator::text, oprowner
  from pg_operator where oprnamespace = 'public'::regnamespace
) o join pg_roles owner on owner.oid = o.owner
where not owner.rolsuper and owner.rolname <> current_user
union all
select 'needed', format('grant connect on database %I to investment_service', database.name)
from service, database where not has_database_privilege(service.oid, database.oid, 'connect')
union all
select 'needed', 'grant usage on schema public to investment_service'
from service where not has_schema_privilege(service.oid, 'public', 'usage')
union all
select 'needed', format('alter role investment_service in database %I set %s = %L', database.name, setting.name, value)
from service, database, jsonb_each_text($1::jsonb) setting (name, value)
where not exists (
  select from pg_db_role_setting
  where setdatabase = database.oid and setrole = service.oid and setting.name || '=' || value = any(setconfig))
union all
select case when is_shared then 'shared' else 'excess' end, format('revoke temporary on database %I from public', database.name)
from service, database where has_database_privilege(service.oid, database.oid, 'temporary')
union all
select case when is_shared then 'shared' else 'excess' end,
  format('revoke execute on function %s from public', p.oid::regprocedure)
from service, database, pg_proc p
where pronamespace = 'pg_catalog'::regnamespace
  and (proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message')
    or proname ~ '^pg_(try_)?advisory_(xact_)?lock')
  and has_function_privilege(service.oid, p.oid, 'execute')
