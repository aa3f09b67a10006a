-- Reads the position of a server in the write-ahead log, in bytes.
select
  pg_is_in_recovery(),
  pg_wal_lsn_diff(
    case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
    '0/0'
  )
