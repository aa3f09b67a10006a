import { Readable } from 'node:stream'
import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { refresh } from '../src/operator/loading/refresh.ts'
import { OperatorError } from '../src/operator-error.ts'
import type { Tables } from '../src/postgres/tables.ts'
import { connectionKey, tokenHash } from '../src/postgres/tokens.ts'
import { busyPortfolio } from './busy-portfolio.ts'
import { FIRST_DAY } from './calendar.ts'
import { refreshLine } from './rows.ts'
import { DEMO } from './sample-data.ts'
import { smallPortfolio } from './small-portfolio.ts'
import { stories, storyOn } from './stories.ts'

/** Adds the sample data to a database. A second run changes nothing. */
export async function seed(pool: pg.Pool): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  await load(pool, db, FIRST_DAY)
}

/** Writes the rows of all connections as the institutions state them on a day. */
async function load(pool: pg.Pool, db: Kysely<Tables>, day: string) {
  const wealth = await demoApp(db, DEMO.wealth.app, DEMO.wealth.token)
  await demoToken(db, wealth, DEMO.wealth.expiredToken, new Date('2025-12-31T12:00:00Z'))
  const tax = await demoApp(db, DEMO.tax.app, DEMO.tax.token)
  const { large, small, empty, ...others } = DEMO.wealth.connections
  const { other } = DEMO.tax.connections
  const ofStories = Object.entries(others).map(([name, connection]) => ({
    app: wealth,
    connection,
    rows: storyOn(day, stories[name as keyof typeof stories]),
  }))
  const connections = [
    {
      app: wealth,
      connection: large,
      rows: busyPortfolio({
        name: 'large',
        seed: 7,
        from: '2016-01-04',
        to: FIRST_DAY,
        maximumPerDay: 4,
      }),
    },
    { app: wealth, connection: small, rows: smallPortfolio },
    { app: wealth, connection: empty, rows: { portfolio: [], account: [], orders: [] } },
    ...ofStories,
    {
      app: tax,
      connection: other,
      rows: busyPortfolio({
        name: 'other',
        seed: 11,
        from: '2025-06-02',
        to: FIRST_DAY,
        maximumPerDay: 1,
      }),
    },
  ]
  const lines: Buffer[] = []
  for (const { app, connection, rows } of connections)
    lines.push(refreshLine(await demoConnection(db, app, connection), rows))
  return await refreshAll(db, pool, lines)
}

/** Refreshes the connection of each line, in one transaction a connection. */
async function refreshAll(db: Kysely<Tables>, pool: pg.Pool, lines: Buffer[]) {
  const counts = { added: 0, corrected: 0, cancelled: 0 }
  const add = (list: { inserted: number; updated: number; removed: number }) => {
    counts.added += list.inserted
    counts.corrected += list.updated
    counts.cancelled += list.removed
  }
  const database = {
    db,
    pool,
    signal: new AbortController().signal,
    findPrimary: async () => {},
  }
  await refresh(database, {
    sources: [{ name: 'sample data', chunks: Readable.from(lines) }],
    jobs: 1,
    appId: undefined,
    // Citus must know the connection to plan a statement.
    genericPlans: false,
    prepare: false,
    // biome-ignore lint/suspicious/noExplicitAny: the result is that of the command refresh.
    onResult: async (result: any) => {
      if (result.errors) throw new OperatorError(JSON.stringify(result.errors))
      add(result.portfolioTransactions)
      add(result.accountTransactions)
      return true
    },
    notice: () => {},
  })
  return counts
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
  await demoToken(db, id, token)
  return id
}

async function demoToken(
  db: Kysely<Tables>,
  app: string,
  token: string,
  expires?: Date,
): Promise<void> {
  await db
    .insertInto('app_token')
    .values({ app_id: app, token_hash: tokenHash(token), expires_at: expires })
    .onConflict((c) => c.doNothing())
    .execute()
}

/** @returns the id of the connection */
async function demoConnection(
  db: Kysely<Tables>,
  app: string,
  { token, label }: { token: string; label: string },
): Promise<string> {
  const hash = tokenHash(token)
  const id = connectionKey(hash)
  await db
    .insertInto('connection')
    .values({ id, app_id: app, token_hash: hash, label })
    .onConflict((c) => c.doNothing())
    .execute()
  return id
}
