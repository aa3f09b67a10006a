import { randomBytes } from 'node:crypto'
import { Kysely, PostgresDialect, sql } from 'kysely'
import type { Test } from 'tap'
import { plannerSettings } from '../../src/postgres/statements.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { openPool } from './database.ts'

/** Opens all tables as their owner. Closed at teardown. */
export function openAsOwner(t: Test, url: string): Kysely<Tables> {
  return new Kysely({ dialect: new PostgresDialect({ pool: openPool(t, url, { max: 4 }) }) })
}

/**
 * Creates a login for one test, with the privileges, policies and planner settings of
 * investment_service. Other test files use that role at the same time.
 * @returns its connection string
 */
export async function loginOfService(t: Test, db: Kysely<Tables>, url: string): Promise<string> {
  const login = await loginOf(t, db, url, 'service')
  const role = sql.id(new URL(login).username)
  // Citus passes the settings of a role to its workers, but no startup options.
  for (const [name, value] of Object.entries(plannerSettings(false)))
    await sql`alter role ${role} set ${sql.id(name)} = ${sql.lit(value)}`.execute(db)
  return login
}

/** Creates a login for one test in one of the roles that the migrations create. @returns its connection string */
export async function loginOf(
  t: Test,
  db: Kysely<Tables>,
  url: string,
  group: 'service' | 'writer',
): Promise<string> {
  const login = new URL(url)
  login.username = `${group}_${randomBytes(6).toString('hex')}`
  login.password = randomBytes(12).toString('hex')
  const role = sql.id(login.username)
  await sql`create role ${role} login password ${sql.lit(login.password)}
    in role ${sql.id(`investment_${group}`)}`.execute(db)
  t.teardown(async () => {
    await sql`drop owned by ${role}`.execute(db)
    await sql`drop role ${role}`.execute(db)
  })
  return login.href
}
