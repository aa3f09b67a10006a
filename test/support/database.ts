import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { databaseUrl, onServer } from './template.ts'

export interface TestDatabase {
  /** Where a connection string leads, as a superuser who owns all tables. */
  url: string
}

/** A database of its own for a test file, cloned from the migrated template and dropped at the end. */
export async function createDatabase(t: Test): Promise<TestDatabase> {
  const { TEST_SERVER_URL: server, TEST_TEMPLATE: template } = process.env
  if (!server || !template) throw new Error('TEST_SERVER_URL is not set: run `npm test`')
  const name = `test_${randomBytes(6).toString('hex')}`
  // 10 ms and 5 ms to drop, against 13 ms and 12 ms when the copy goes through the log.
  await onServer(server, `create database ${name} template ${template} strategy file_copy`)
  t.teardown(() => onServer(server, `drop database ${name} with (force)`))
  return { url: databaseUrl(server, name) }
}
