import { type Kysely, sql } from 'kysely'

/**
 * Apps, their bearer tokens and their connections (sections 5.1 to 5.3 of the specification).
 * The database has only the SHA-256 of bearer tokens and connection tokens.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create domain token_hash as bytea check (octet_length(value) = 32)`.execute(db)

  await sql`
    create table app (
      id uuid primary key default gen_random_uuid(),
      name text not null unique check (name <> '' and char_length(name) <= 255),
      -- The client id by which an identity provider knows this app; null where it has none.
      client_id text unique check (client_id <> '' and char_length(client_id) <= 255),
      created_at timestamptz not null default now()
    )`.execute(db)

  // An app may have several valid tokens at once, so that the operator can rotate them.
  await sql`
    create table app_token (
      id uuid primary key default gen_random_uuid(),
      app_id uuid not null references app on delete cascade,
      token_hash token_hash not null unique,
      created_at timestamptz not null default now(),
      -- Null never expires.
      expires_at timestamptz,
      revoked_at timestamptz
    )`.execute(db)
  await sql`create index app_token_app on app_token (app_id)`.execute(db)

  await sql`
    create table connection (
      -- The connection key: the first 8 bytes of the token's SHA-256. The service computes it from the
      -- request. PostgreSQL (partitions) and Citus (shards) therefore know it before a statement runs.
      id bigint not null,
      app_id uuid not null references app on delete cascade,
      token_hash token_hash not null,
      label text check (char_length(label) <= 255),
      created_at timestamptz not null default now(),
      -- Row counts: only the triggers of migration 0003 may write them.
      portfolio_transactions bigint not null default 0 check (portfolio_transactions >= 0),
      account_transactions bigint not null default 0 check (account_transactions >= 0),
      -- Grows with every change of the connection's rows. The ETag consists of it and changed_at.
      data_version bigint not null default 0,
      changed_at timestamptz not null default now(),
      -- Removals up to this change number may be unknown: clients with an older copy must start again.
      change_horizon bigint not null default 0,
      -- The included columns make this index wider than connection_lookup below. PostgreSQL would
      -- otherwise use it for the lookup and read the row of another app's connection.
      primary key (id) include (app_id, created_at),
      constraint connection_key
        check (id = ('x' || encode(substring(token_hash from 1 for 8), 'hex'))::bit(64)::bigint)
    ) with (fillfactor = 70)`.execute(db)
  // The lookup of a request finds no entry for a missing connection, nor for one of another app.
  // It reads no table row in either case, so response times do not reveal which one it was.
  await sql`create unique index connection_lookup on connection (app_id, id)`.execute(db)
}
