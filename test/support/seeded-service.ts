import pg from 'pg'
import type { Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { seed } from '../../seeds/seed.ts'
import { createDatabase, openPool } from './database.ts'
import { openTestDatabase, type TestDatabase } from './new-database.ts'
import { type Service, type ServiceOptions, startService } from './service.ts'
import { cloneDatabase, databaseUrl, dropDatabase, isCitus } from './template.ts'

/** App token of the sample data, and the connection that the documentation shows. */
export const { token: DEMO_TOKEN } = DEMO.wealth
export const DEMO_CONNECTION = `/api/v1/queries/connections/${DEMO.wealth.connections.small.token}`

/** Starts the service with the sample data. */
export async function startSeededService(t: Test, options?: ServiceOptions): Promise<Service> {
  const { url } = await createDatabase(t, isCitus ? undefined : await seededTemplate())
  if (isCitus) await seed(openPool(t, url))
  return startService(t, { ...options, databaseUrl: url })
}

/** Creates a database with the sample data, for a service in another process. */
export async function openSeededDatabase(t: Test): Promise<TestDatabase> {
  return openTestDatabase(t, await seededTemplate())
}

/**
 * Returns the name of a template with the sample data. The first test file that needs it creates it: that
 * takes a second of processor time, and a clone 10 ms.
 */
async function seededTemplate(): Promise<string> {
  const { TEST_SERVER_URL: server = '', TEST_TEMPLATE: template = '' } = process.env
  const name = `${template}_seeded`
  const client = new pg.Client({ connectionString: server })
  await client.connect()
  // Other files wait until the connection of this one ends.
  await client.query('select pg_advisory_lock(hashtext($1))', [name])
  const found = await client.query('select from pg_database where datname = $1', [name])
  if (found.rowCount === 0) {
    const making = `${template}_seeding`
    await dropDatabase(server, making)
    await cloneDatabase(server, template, making)
    const pool = new pg.Pool({ connectionString: databaseUrl(server, making) })
    await seed(pool).finally(() => pool.end())
    await client.query(`alter database ${making} rename to ${name}`)
  }
  await client.end()
  return name
}
