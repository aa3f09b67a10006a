import { randomBytes } from 'node:crypto'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { DEMO } from '../../seeds/demo-world.ts'
import { seed } from '../../seeds/seed.ts'
import { migrateToLatest } from '../../src/postgres/migrations.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { startEmbedded } from './embedded.ts'

/** A database of one's own, with the demo world in it, for as long as this process lives. */
export interface Demo {
  /** Leads to it as the role that can only read what the service serves. */
  url: string
  stop(): Promise<void>
}

/**
 * Starts the embedded PostgreSQL, brings its schema up to date, and seeds it when it has no app yet.
 * @throws EmbeddedDatabaseInUse when another process runs it
 */
export async function startDemo(dataDir: string): Promise<Demo> {
  const embedded = await startEmbedded(dataDir)
  try {
    const password = await prepare(embedded.url)
    const url = new URL(embedded.url)
    url.username = 'investment_service'
    url.password = password
    return { url: url.href, stop: embedded.stop }
  } catch (error) {
    await embedded.stop()
    throw error
  }
}

/** @returns the password that the service's role has from now on */
async function prepare(url: string): Promise<string> {
  const pool = new pg.Pool({ connectionString: url })
  try {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
    await migrateToLatest(db)
    const apps = await db.selectFrom('app').select('id').limit(1).execute()
    if (apps.length === 0) await seed(pool)
    const password = randomBytes(24).toString('base64url')
    await pool.query(`alter role investment_service login password '${password}'`)
    return password
  } finally {
    await pool.end()
  }
}

/** What a newcomer wants to know: where it is, and lines to paste. */
export function welcome(address: string): string {
  const { token, connections } = DEMO.wealth
  const connection = `${address}/api/v1/queries/connections/${connections.small.token}`
  const curl = (path: string) => `  curl -H 'Authorization: Bearer ${token}' '${connection}${path}'`
  return [
    '',
    `The service answers at ${address}, and explains itself at ${address}/docs`,
    '',
    'Its demo world is for everybody to read. Try:',
    '',
    curl('/portfolios/transactions'),
    curl('/accounts/transactions?from=2024-07-01&limit=2'),
    curl('/assets-transfer'),
    '',
    `More connections: ${connections.large.token} (ten years), ${connections.empty.token} (no rows).`,
    'Ctrl-C stops the service and its database; the data stays.',
    '',
    '',
  ].join('\n')
}
