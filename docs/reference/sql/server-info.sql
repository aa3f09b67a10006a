-- Reads the version of PostgreSQL, its role and the newest migration.
(
  select
    current_setting('server_version') as version,
    pg_is_in_recovery() as standby,
    (select max(name) as name from kysely_migration) as newest_migration
)
