import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'

/** Makes each statement on portfolio transactions take so many seconds more. */
export async function slowed(
  t: Test,
  db: Kysely<Tables>,
  seconds: number,
  use: () => Promise<void>,
): Promise<void> {
  await sql`create policy slow on portfolio_transaction as restrictive for select
    using ((select pg_sleep(${sql.lit(seconds)})) is not null)`.execute(db)
  const mend = () => sql`drop policy if exists slow on portfolio_transaction`.execute(db)
  t.teardown(mend)
  await use().finally(mend)
}
