import { randomBytes } from 'node:crypto'
import pg from 'pg'
import type { Test } from 'tap'

export interface TestDatabase {
  /** Where a connection string leads, as a superuser who owns all tables. */
  url: string
}

/** A database of its own for a test file, cloned from the migrated template and dropped at the end. */
export async function createDatabase(t: Test): Promise<TestDatabase> {
  const server = process.env.TEST_SERVER_URL
  if (server === undefined) throw new Error('TEST_SERVER_URL is not set: run `npm test`')
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name} template investment_template`)
  t.teardown(() => onServer(server, `drop database ${name} with (force)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return { url: url.href }
}

async function onServer(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
