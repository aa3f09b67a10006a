-- Checks if Citus distributes the tables.
select 1
from pg_dist_partition
where logicalrelid = to_regclass('public.connection')
