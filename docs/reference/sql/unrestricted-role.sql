-- Checks if row-level security does not apply to the role.
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
