import { sql } from 'kysely'
import type { Test } from 'tap'
import { openAsOwner } from './logins.ts'

/** Closes a database to everyone while something is done, with all its sessions ended. */
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
