import { Readable } from 'node:stream'
import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { importRows } from '../src/operator/loading/import-rows.ts'
import type { Tables } from '../src/postgres/tables.ts'
import { connectionKey, tokenHash } from '../src/postgres/tokens.ts'
import { busyPortfolio } from './busy-portfolio.ts'
import { type ConnectionRows, toLine } from './rows.ts'
import { DEMO } from './sample-data.ts'
import { smallPortfolio } from './small-portfolio.ts'

/** Adds the sample data to a database, through the import. A second run changes nothing. */
export async function seed(pool: pg.Pool): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const wealth = await demoApp(db, DEMO.wealth.app, DEMO.wealth.token)
  const tax = await demoApp(db, DEMO.tax.app, DEMO.tax.token)
  const { large, small, empty } = DEMO.wealth.connections
  const to = '2025-12-31'
  const busy = busyPortfolio({ name: 'large', seed: 7, from: '2016-01-04', to, maximumPerDay: 4 })
  const other = busyPortfolio({ name: 'other', seed: 11, from: '2025-06-02', to, maximumPerDay: 1 })
  await demoConnection(db, pool, wealth, large, busy)
  await demoConnection(db, pool, wealth, small, smallPortfolio)
  await demoConnection(db, pool, wealth, empty, { portfolio: [], account: [], orders: [] })
  await demoConnection(db, pool, tax, DEMO.tax.connections.other, other)
}

async function demoApp(db: Kysely<Tables>, name: string, token: string): Promise<string> {
  await db
    .insertInto('app')
    .values({ name })
    .onConflict((c) => c.doNothing())
    .execute()
  const { id } = await db
    .selectFrom('app')
    .select('id')
    .where('name', '=', name)
    .executeTakeFirstOrThrow()
  await db
    .insertInto('app_token')
    .values({ app_id: id, token_hash: tokenHash(token) })
    .onConflict((c) => c.doNothing())
    .execute()
  return id
}

async function demoConnection(
  db: Kysely<Tables>,
  pool: pg.Pool,
  app: string,
  { token, label }: { token: string; label: string },
  rows: ConnectionRows,
): Promise<void> {
  const hash = tokenHash(token)
  const id = connectionKey(hash)
  await db
    .insertInto('connection')
    .values({ id, app_id: app, token_hash: hash, label })
    .onConflict((c) => c.doNothing())
    .execute()
  const write = (type: Parameters<typeof importRows>[1]['type'], items: object[]) =>
    importRows(pool, {
      type,
      connectionId: id,
      sources: [{ name: 'sample data', chunks: Readable.from(items.map(toLine)) }],
    })
  await write('portfolio-transactions', rows.portfolio)
  await write('account-transactions', rows.account)
  await write('transfer-orders', rows.orders)
}
