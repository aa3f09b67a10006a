import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../../src/postgres/tables.ts'
import { keySql } from '../../support/rows.ts'

/** Each app has a token, a client id and one connection with rows of all three types. */
const APPS = 200
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

const numbers = (count: number) => `generate_series(1, ${count}) n`
const day = `date '2025-01-01' + n % ${DAYS}`
