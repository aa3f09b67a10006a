import type { Kysely } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'
import { createDatabase } from './database.ts'
import { loginOfService, openAsOwner } from './logins.ts'

export interface TestDatabase {
  /** Connection string of the owner. */
  url: string
  /** Connection string of the service. */
  login: string
  /** Tables of the owner. */
  db: Kysely<Tables>
}

/**
 * Creates a database for a test, on the server of all tests.
 * @param template database that is cloned; default: the one without rows
 */
export async function openTestDatabase(t: Test, template?: string): Promise<TestDatabase> {
  const { url } = await createDatabase(t, template)
  const db = openAsOwner(t, url)
  return { url, db, login: await loginOfService(t, db, url) }
}
