import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'
import { Limits } from '../../src/limits/limits.ts'
import { MemoryAccount } from '../../src/limits/memory-account.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import { Reader } from '../../src/postgres/reader.ts'
import { FactRecorder } from '../../src/request-facts.ts'
import { cloneDatabase, databaseUrl, dropDatabase } from './template.ts'

export interface TestDatabase {
  /** Connection string of a superuser who owns all tables. */
  url: string
}

/** Clones the migrated template or another one, and drops the clone at teardown. */
export async function createDatabase(
  t: Test,
  template = process.env.TEST_TEMPLATE,
): Promise<TestDatabase> {
  const { TEST_SERVER_URL: server } = process.env
  if (!server || !template) throw new Error('TEST_SERVER_URL is not set: run `npm test`')
  const name = `test_${randomBytes(6).toString('hex')}`
  await cloneDatabase(server, template, name)
  t.teardown(() => dropDatabase(server, name))
  return { url: databaseUrl(server, name) }
}

/**
 * Opens a connection, and closes it at teardown.
 * @param options startup options, such as `-c work_mem=64kB`
 */
export async function openClient(t: Test, url: string, options = ''): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** Opens a pool of connections, and closes it at teardown. */
export function openPool(t: Test, url: string, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, ...options })
  // A test may stop the database, and pool.end() does not wait until its sockets are closed. Without a
  // listener, a connection that PostgreSQL ends would end the test file. Statements report their own errors.
  pool.on('error', () => {})
  t.teardown(() => pool.end())
  return pool
}

interface ReaderOptions {
  /** Maximum number of rows in the response. */
  rows?: number
  /** Time since the start of the request, in ms. */
  msAgo?: number
  tenant?: Tenant
  limits?: Limits
}

/** Opens the memory account of a response. */
export function accountOf(limits: Limits): MemoryAccount {
  return new MemoryAccount(limits.memory, { tenant: new Tenant('app') })
}

/** Creates the reader of a request, by default without limits. */
export function readerOf({
  rows = 1,
  msAgo = 0,
  tenant = new Tenant('app'),
  limits = new Limits(1_000, 2 ** 28),
}: ReaderOptions = {}): Reader {
  const owner = { tenant }
  const reader = new Reader({
    owner,
    memory: new MemoryAccount(limits.memory, owner),
    sizes: limits.pageSizes,
    recorder: new FactRecorder(performance.now() - msAgo),
    onReadEnd: () => {},
  })
  reader.expectRows(rows)
  return reader
}
