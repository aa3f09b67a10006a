-- Objects of the schema in the order of their creation, each as the text of a statement that would create it.
with own as (
  select c.oid, c.relname as name, c.relowner as owner, c.reloptions, c.relispartition, c.relrowsecurity, c.relacl
  from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relname like 'kysely%'
), columns as (
  select attrelid, string_agg(format(E'  %s %s%s%s', attname, format_type(atttypid, atttypmod),
      case attgenerated when 's' then format(' generated always as (%s) stored', pg_get_expr(adbin, adrelid))
        else coalesce(' default ' || pg_get_expr(adbin, adrelid), '') end,
      case when attnotnull then ' not null' else '' end), E',\n' order by attnum) as list
  from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
  where attnum > 0 and not attisdropped
  group by attrelid
), domains as (
  select t.oid, t.typname as name, format('create domain %s as %s%s', typname,
    format_type(typbasetype, typtypmod), (
      select string_agg(' ' || pg_get_constraintdef(c.oid), '' order by conname) from pg_constraint c
      where contypid = t.oid and contype = 'c')) as text
  from pg_type t where typnamespace = 'public'::regnamespace and typtype = 'd'
), granted as (
  select 'table ' || name as object, '' as columns, privilege_type, grantee, owner
  from own, aclexplode(relacl)
  union all
  select 'table ' || name, format(' (%s)', string_agg(attname, ', ' order by attnum)), privilege_type, grantee, owner
  from own join pg_attribute on attrelid = own.oid and attnum > 0, aclexplode(attacl)
  group by name, privilege_type, grantee, owner
  union all
  select 'function ' || oid::regprocedure, '', privilege_type, grantee, proowner
  from pg_proc, aclexplode(proacl) where pronamespace = 'public'::regnamespace
)
select text from (
select 1 as kind, name::text, text from domains
union all
select 2, name, format(E'create table %s (\n%s\n)%s%s', name, list,
    ' partition by ' || pg_get_partkeydef(own.oid),
    ' with (' || array_to_string(reloptions, ', ') || ')')
from own join columns on attrelid = own.oid where not relispartition
union all
-- A foreign key refers to a primary key, which must exist.
select case contype when 'f' then 4 else 3 end, name || ' ' || conname,
  format('alter table %s add constraint %s %s', name, conname, pg_get_constraintdef(c.oid))
from own join pg_constraint c on conrelid = own.oid
where not relispartition and contype <> 'n' and not conname like '%\_not\_null'
union all
select 5, name || ' ' || indexrelid::regclass, pg_get_indexdef(indexrelid)
from own join pg_index on indrelid = own.oid
where not relispartition and not exists (select from pg_constraint where conindid = indexrelid and contype <> 'f')
union all
select 6, oid::regprocedure::text, rtrim(pg_get_functiondef(oid))
from pg_proc where pronamespace = 'public'::regnamespace
union all
select 7, name || ' ' || tgname, pg_get_triggerdef(t.oid)
from own join pg_trigger t on tgrelid = own.oid where not tgisinternal and not relispartition
union all
select 8, tablename || ' ' || policyname, format('create policy %s on %s as %s for %s to %s%s%s', policyname,
  tablename, lower(permissive collate "C"), lower(cmd collate "C"), array_to_string(roles, ', '), format(' using (%s)', qual),
  ' with check (' || with_check || ')')
from pg_policies where schemaname = 'public'
union all
select 9, name, format('alter table %s enable row level security', name) from own where relrowsecurity
union all
select 10, oid::regprocedure::text, format('revoke execute on function %s from public', oid::regprocedure)
from pg_proc
where pronamespace = 'public'::regnamespace and not has_function_privilege('public', oid, 'execute')
union all
select 11, concat_ws(' ', object, rolname, privilege_type), format('grant %s%s on %s to %s',
  lower(privilege_type collate "C"), columns, object, coalesce(rolname, 'public'))
from granted left join pg_roles r on r.oid = grantee
-- The owner has all rights, and its name may begin in the same way.
where grantee = 0 or rolname like 'investment%' and grantee <> owner
union all
select 12, name || ' ' || tgname, format('alter table %s disable trigger %s', name, tgname)
from own join pg_trigger on tgrelid = own.oid where not tgisinternal and not relispartition and tgenabled in ('D', 'R')
union all
select 12, indexrelid::regclass::text, format('reindex index %s', indexrelid::regclass)
from own join pg_index on indrelid = own.oid where not indisvalid
) o order by kind, name collate "C"
