import { Readable } from 'node:stream'
import { Kysely, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import { refresh } from '../src/operator/loading/refresh.ts'
import { OperatorError } from '../src/operator-error.ts'
import type { Tables } from '../src/postgres/tables.ts'
import { connectionKey, tokenHash } from '../src/postgres/tokens.ts'
import { busyPortfolio } from './busy-portfolio.ts'
import { FIRST_DAY, weekBefore, weekdayAfter } from './calendar.ts'
import { refreshLine } from './rows.ts'
import { DEMO } from './sample-data.ts'
import { smallPortfolio } from './small-portfolio.ts'
import { stories, storyOn } from './stories.ts'

const LARGE = { name: 'large', seed: 7, from: '2016-01-04', maximumPerDay: 4 }
const OTHER = { name: 'other', seed: 11, from: '2025-06-02', maximumPerDay: 1 }

/** Adds the sample data to a database. A second run changes nothing. */
export async function seed(pool: pg.Pool): Promise<void> {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  await load(pool, db, (await dayOf(db)) ?? FIRST_DAY)
}

/**
 * Moves the sample data by some weekdays: each connection is refreshed once, with its rows of the last day.
 * @returns the last day, and the numbers of rows
 * @throws OperatorError if the database does not have the sample data
 */
export async function advance(pool: pg.Pool, days: number) {
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  const before = await dayOf(db)
  if (before === undefined) throw new OperatorError('The database does not have the sample data.')
  let day = before
  for (let left = days; left > 0; left -= 1) day = weekdayAfter(day)
  const known = (await isOutdated(db)) ? undefined : before
  return { day, ...(await load(pool, db, day, known)) }
}

/** Returns true if a release without the stories has added the sample data. `seed` then replaces it. */
export async function isOutdated(db: Kysely<Tables>): Promise<boolean> {
  const { large, gap } = DEMO.wealth.connections
  const hashes = [large, gap].map(({ token }) => tokenHash(token))
  const found = await db
    .selectFrom('connection')
    .select('token_hash')
    .where('id', 'in', hashes.map(connectionKey))
    .where('token_hash', 'in', hashes)
    .execute()
  return found.length === 1
}

/** Returns the newest day of the large connection, which has rows of each weekday. */
async function dayOf(db: Kysely<Tables>): Promise<string | undefined> {
  const { app, connections } = DEMO.wealth
  const hash = tokenHash(connections.large.token)
  const found = await db
    .selectFrom('portfolio_transaction')
    .innerJoin('connection', 'connection.id', 'connection_id')
    .innerJoin('app', 'app.id', 'connection.app_id')
    .select(sql<string | null>`max(effective_day)::text`.as('day'))
    .where('connection.id', '=', connectionKey(hash))
    .where('token_hash', '=', hash)
    .where('app.name', '=', app)
    .executeTakeFirst()
  return found?.day ?? undefined
}

/**
 * Writes the rows of all connections as the institutions state them on a day.
 * @param before day of the rows that the database has
 */
async function load(pool: pg.Pool, db: Kysely<Tables>, day: string, before?: string) {
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
    { app: wealth, connection: large, rows: busyPortfolio({ ...LARGE, to: day }) },
    { app: wealth, connection: small, rows: smallPortfolio },
    { app: wealth, connection: empty, rows: { portfolio: [], account: [], orders: [] } },
    ...ofStories,
    { app: tax, connection: other, rows: busyPortfolio({ ...OTHER, to: FIRST_DAY }) },
  ]
  const lines: Buffer[] = []
  for (const { app, connection, rows } of connections) {
    const id = await demoConnection(db, app, connection)
    const changedFrom = connection === large && before ? weekBefore(before) : undefined
    lines.push(refreshLine(id, rows, changedFrom))
  }
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
    // The caller may have one.
    pooler: true,
  }
  await refresh(database, {
    sources: [{ name: 'sample data', chunks: Readable.from(lines) }],
    jobs: 1,
    appId: undefined,
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
