import { sql } from 'kysely'
import type { Test } from 'tap'
import { openAsOwner } from './logins.ts'

/** Ends all connections to a database, and forbids new ones while `use` runs. */
export async function duringOutage(t: Test, url: string, use: () => Promise<void>): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const elsewhere = openAsOwner(t, String(process.env.TEST_SERVER_URL))
  const admit = (admitted: boolean) =>
    sql`alter database ${sql.id(name)} with allow_connections ${sql.lit(admitted)}`.execute(
      elsewhere,
    )
  const sessions = sql`from pg_stat_activity where datname = ${name}`
  await admit(false)
  await sql`select pg_terminate_backend(pid) ${sessions}`.execute(elsewhere)
  await use().finally(() => admit(true))
}
