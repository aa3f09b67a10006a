import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/index.ts'
import { DEMO } from '../../seeds/sample-data.ts'
import { isOutdated, seed } from '../../seeds/seed.ts'
import { prepareRights } from '../../src/operator/rights.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { startEmbedded } from './embedded.ts'

/**
 * Starts the embedded PostgreSQL, migrates its schema, and adds the sample data if it has no app,
 * or only that of an older release. It stops with this process, which ends if PostgreSQL is killed.
 * @returns its URL for the role investment_service, and the tokens that the page /docs fills in
 * @throws EmbeddedDatabaseInUse if another process runs it
 */
export async function startDemo(dataDir: string) {
  // Standard output has only the log.
  const report = (text: string) => process.stderr.write(text)
  if (process.stderr.isTTY) report(`Starting PostgreSQL with the sample data in ${dataDir}/ …\n`)
  const embedded = await startEmbedded(dataDir)
  await prepare(embedded.url)
  const url = new URL(embedded.url)
  url.username = 'investment_service'
  const socket = String(url.searchParams.get('host'))
  void embedded.killed.then((sentence) => {
    report(`${sentence}\n`)
    process.exit(1)
  })
  return {
    url: url.href,
    DEMO_TOKENS: `${DEMO.wealth.token},${DEMO.wealth.connections.small.token}`,
    welcome: (address: string) => report(welcome(address, socket)),
    stop: embedded.stop,
  }
}

/** Prepares the schema, the sample data and the role of the service. */
async function prepare(url: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => {})
  // A checked-out connection reports here that it broke between two statements.
  pool.on('connect', (client) => client.on('error', () => {}))
  try {
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
    await migrateToLatest(db)
    await prepareRights(db, () => {})
    const apps = await db.selectFrom('app').select('id').limit(1).execute()
    if (apps.length === 0 || (await isOutdated(db))) await seed(pool)
    await pool.query('alter role investment_service login')
  } finally {
    await pool.end()
  }
}

/** Message of `npm start` on standard error: the address, example requests, and the way to the database. */
function welcome(address: string, socket: string): string {
  const { token, connections } = DEMO.wealth
  const connection = `${address}/api/v1/queries/connections/${connections.small.token}`
  const curl = (path: string) => `  curl -H 'Authorization: Bearer ${token}' '${connection}${path}'`
  return [
    '',
    `The service runs at ${address}. Its documentation is at ${address}/docs`,
    '',
    'The tokens of its sample data are public. Try in another terminal:',
    '',
    curl('/portfolios/transactions'),
    curl('/accounts/transactions?from=2024-07-01&limit=2'),
    curl('/assets-transfer'),
    '',
    `Other connection tokens: ${connections.large.token} (ten years), ${connections.empty.token} (no rows),`,
    `${connections.split.token} and others with known results: docs/sandbox.md.`,
    '',
    'Its database listens on a Unix socket only. psql connects as a superuser:',
    '',
    `  psql --host='${socket}' --username=postgres`,
    '',
    'Ctrl-C stops the service and its database. The data stays for the next start.',
    '',
    '',
  ].join('\n')
}
