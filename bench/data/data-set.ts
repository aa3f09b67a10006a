import type pg from 'pg'
import { type ImportOptions, importRows } from '../../src/operator/loading/import-rows.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { orderLines, transactionLines } from './rows.ts'

/** Connections 1 to 200 have 1,500 rows each, over five years; 201 is the large one. */
export const CONNECTIONS = 200
export const ROWS_EACH = 1_500
export const LARGE = CONNECTIONS + 1
/** Orders of each connection; three in four are completed. */
const ORDERS_EACH = 12
export const ROWS_PER_DAY = 0.8
/** The large one spans 27 years: its totals are sums over 10,000 days. */
const DAYS_OF_LARGE = 10_000
const APPS = 10

export const appToken = (connection: number) => `app-${connection % APPS}`
export const connectionToken = (connection: number) => `connection-${connection}`

/** Key of a connection in the database, by its number in the bench. */
export const keyOf = (connection: number) => connectionKey(tokenHash(connectionToken(connection)))

/** Adds the apps, and connections 1 to `count`. */
export async function makeConnections(owner: pg.Pool, count: number): Promise<void> {
  await owner.query(`insert into app (name) select 'app-' || n from generate_series(0, $1) n`, [
    APPS - 1,
  ])
  for (let app = 0; app < APPS; app += 1) {
    await owner.query(
      `insert into app_token (app_id, token_hash) select id, $2 from app where name = $1`,
      [`app-${app}`, tokenHash(`app-${app}`)],
    )
  }
  const numbers = Array.from({ length: count }, (_, index) => index + 1)
  await owner.query(
    `insert into connection (id, app_id, token_hash)
     select c.id, app.id, c.hash from unnest($1::bigint[], $2::text[], $3::bytea[])
       c (id, app, hash) join app on app.name = c.app`,
    [numbers.map(keyOf), numbers.map(appToken), numbers.map((n) => tokenHash(connectionToken(n)))],
  )
}

/** Fills the data set through the project's own import. */
export async function fill(owner: pg.Pool, largeRows: number): Promise<void> {
  await fillSmall(owner)
  const rows = transactionLines(LARGE, largeRows, largeRows / DAYS_OF_LARGE)
  await importLines(owner, 'portfolio-transactions', LARGE, rows)
  await settle(owner)
}

/** Fills the small connections: all but the large one. */
export async function fillSmall(owner: pg.Pool): Promise<void> {
  await makeConnections(owner, LARGE)
  for (let id = 1; id <= CONNECTIONS; id += 1) {
    const rows = transactionLines(id, ROWS_EACH, ROWS_PER_DAY)
    await importLines(owner, 'portfolio-transactions', id, rows)
    await importLines(owner, 'transfer-orders', id, orderLines(id, ORDERS_EACH))
  }
}

export async function importLines(
  owner: pg.Pool,
  type: ImportOptions['type'],
  connection: number,
  chunks: AsyncIterable<Buffer>,
) {
  const sources = [{ name: 'rows', chunks }]
  return importRows(owner, { type, connectionId: keyOf(connection), sources })
}

/** Does what autovacuum and the checkpointer would do in the next minutes. */
export async function settle(owner: pg.Pool): Promise<void> {
  await owner.query('vacuum (analyze)')
  await owner.query('checkpoint')
}
