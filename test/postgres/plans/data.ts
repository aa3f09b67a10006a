import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../../src/postgres/tables.ts'
import { keySql } from '../../support/rows.ts'

/** Each app has a token, a client id and one connection with rows of all three types. */
const APPS = 30
const DAYS = 60
const ROWS_PER_DAY = 2

/** Fills the empty tables. The tokens of the seventh app are `app 7` and `connection 7`. */
export async function fillTables(db: Kysely<Tables>): Promise<void> {
  const statements = [
    `insert into app (name, client_id) select 'app ' || n, 'client ' || n from ${numbers(APPS)}`,
    `insert into app_token (app_id, token_hash) select id, sha256(name::bytea) from app`,
    `insert into connection (id, app_id, token_hash)
      select ${keySql('hash')}, id, hash
      from app, sha256(replace(name, 'app', 'connection')::bytea) hash`,
    `insert into portfolio_transaction
        (connection_id, transaction_id, portfolio_id, type, operation_date_day, description)
      select id, gen_random_uuid(), app_id, 'BUY', ${day}, repeat('x', 100)
      from connection, ${numbers(DAYS * ROWS_PER_DAY)}`,
    `insert into account_transaction
        (connection_id, movement_id, account_id, type, amount, value_date_day, description)
      select id, gen_random_uuid(), app_id, 'FEES', n, ${day}, repeat('x', 100)
      from connection, ${numbers(DAYS * ROWS_PER_DAY)}`,
    `insert into assets_transfer_order (connection_id, id, completed_at, name)
      select id, gen_random_uuid(), ${day}, repeat('x', 100) from connection, ${numbers(50)}`,
  ]
  for (const statement of statements) await sql.raw(statement).execute(db)
}

/** Number of the first removal and of the first row of fillFeed(). */
export const FIRST_REMOVAL = 1n << 31n
export const FIRST_ROW = 2n << 31n

/**
 * Adds a connection of the app `app`, with the token `connection`: removals, then rows. Without triggers, because
 * they take longer.
 */
export async function fillFeed(db: Kysely<Tables>, removals: number, rows: number): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    for (const statement of [
      'set local session_replication_role = replica',
      `insert into app (name) values ('app')`,
      `insert into app_token (app_id, token_hash) select id, sha256('app') from app where name = 'app'`,
      `insert into connection (id, app_id, token_hash, data_version)
        select ${keySql('hash')}, id, hash, 3 from app, sha256('connection') hash where name = 'app'`,
      `insert into portfolio_transaction_removal (connection_id, change_number, transaction_id)
        select id, ${FIRST_REMOVAL} + n, gen_random_uuid() from connection, ${numbers(removals)}
        where token_hash = sha256('connection')`,
      `insert into portfolio_transaction
          (connection_id, change_number, transaction_id, portfolio_id, type, operation_date_day)
        select id, ${FIRST_ROW} + n, gen_random_uuid(), app_id, 'BUY', ${day}
        from connection, ${numbers(rows)} where token_hash = sha256('connection')`,
    ])
      await sql.raw(statement).execute(transaction)
  })
}

const numbers = (count: number) => `generate_series(1, ${count}) n`
const day = `date '2025-01-01' + n % ${DAYS}`
