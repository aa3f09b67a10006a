-- Statements that repair what the roles of a database must not be: tables and functions of triggers have the owner of the
-- table app, which prunes and migrates them. Row-level
-- security restricts the service and its logins.
with app as (
  select relowner as owner, rolname from pg_class join pg_roles r on r.oid = relowner
  where pg_class.oid = to_regclass('public.app')
), service as (
  select oid from pg_roles
  where oid = to_regrole('investment_service')
    or oid in (select member from pg_auth_members where roleid = to_regrole('investment_service'))
)
select format('alter %s %I owner to %I', case relkind when 'v' then 'view' else 'table' end, relname, app.rolname) as text
from app, pg_class c
where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and relowner <> app.owner
  and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
union all
select distinct format('alter function %s owner to %I', tgfoid::regprocedure, app.rolname)
from app, pg_trigger join pg_class c on c.oid = tgrelid join pg_proc p on p.oid = tgfoid
where relnamespace = 'public'::regnamespace and pronamespace = 'public'::regnamespace and not tgisinternal
  and proowner <> app.owner
union all
select format('alter role %I nobypassrls', rolname) from pg_roles join service using (oid) where rolbypassrls
union all
select format('alter role %I nosuperuser', rolname) from pg_roles join service using (oid) where rolsuper
