-- Checks if the connection forces generic plans on Citus.
select
  current_setting('plan_cache_mode') = 'force_generic_plan'
  and exists (select from pg_extension where extname = 'citus')
