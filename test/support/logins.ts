import { randomBytes } from 'node:crypto'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import type { Test } from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'

/** All tables, with the right to write. Closed at teardown. */
export function openAsOwner(t: Test, url: string): Kysely<Tables> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  // Where a test takes the database away, whoever uses a connection is told by its own error.
  pool.on('error', () => {})
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  t.teardown(() => db.destroy())
  return db
}

/**
 * Makes a login for one test, with the rights of investment_service and bound by its policies, and
 * returns its connection string. That role itself belongs to the whole server, where other test files
 * run at the same time.
 */
export async function loginOfService(t: Test, db: Kysely<Tables>, url: string): Promise<string> {
  const login = new URL(url)
  login.username = `service_${randomBytes(6).toString('hex')}`
  login.password = randomBytes(12).toString('hex')
  const role = sql.id(login.username)
  await sql`create role ${role} login password ${sql.lit(login.password)} in role investment_service`.execute(
    db,
  )
  t.teardown(() => sql`drop role ${role}`.execute(db))
  return login.href
}
