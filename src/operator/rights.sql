-- Finds what this database needs before migrations, by its kind:
-- needed   statements that create the roles of the service and of writers, and give the service its settings and rights.
--          PUBLIC may create objects in the schema public of databases of PostgreSQL 14 and earlier: one revokes it
-- foreign  functions and operators of other roles in this schema. PostgreSQL may prefer them to its own, also in migrations
-- $1: settings of each connection that other settings of the role or the database must not replace, as a JSON object
with settings as (
  -- PgBouncer may reject them as startup options.
  select name, value
  from jsonb_each_text($1::jsonb || '{
    "default_transaction_read_only": "on",
    "statement_timeout": "5s",
    "lock_timeout": "1s",
    "idle_in_transaction_session_timeout": "10s",
    "idle_session_timeout": "0",
    "transaction_timeout": "0"}') settings (name, value)
  -- PostgreSQL 16 and earlier have no transaction_timeout.
  where current_setting(name, true) is not null
), service as (
  select coalesce(to_regrole('investment_service')::oid, 0) as oid
), database as (
  select oid, datname as name from pg_database where datname = current_database()
)
select 'needed' as kind, format('create role %s', role.name) as statement
from unnest(array['investment_service', 'investment_writer']) role (name)
where to_regrole(role.name) is null
union all
select 'needed', 'revoke create on schema public from public'
where has_schema_privilege('public', 'public', 'create')
union all
select 'needed', format('grant connect on database %I to investment_service', database.name)
from service, database where not has_database_privilege(service.oid, database.oid, 'connect')
union all
select 'needed', 'grant usage on schema public to investment_service'
from service where not has_schema_privilege(service.oid, 'public', 'usage')
union all
select 'needed', format('alter role investment_service in database %I set %s = %L', database.name, settings.name, value)
from service, database, settings
where not exists (
  select from pg_db_role_setting
  where setdatabase = database.oid and setrole = service.oid and settings.name || '=' || value = any(setconfig))
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
