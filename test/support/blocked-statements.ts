import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'

/** Delays each statement on portfolio transactions by a number of seconds while `use` runs. */
export async function withSlowStatements(
  t: Test,
  db: Kysely<Tables>,
  seconds: number,
  use: () => Promise<void>,
): Promise<void> {
  await sql`create policy slow on portfolio_transaction as restrictive for select
    using ((select pg_sleep(${sql.lit(seconds)})) is not null)`.execute(db)
  const restore = () => sql`drop policy if exists slow on portfolio_transaction`.execute(db)
  t.teardown(restore)
  await use().finally(restore)
}

/** Blocks each statement that reads certain rows, by default any portfolio transaction, until `use` has ended. */
export async function withBlockedStatements(
  t: Test,
  db: Kysely<Tables>,
  use: () => Promise<void>,
  table: keyof Tables = 'portfolio_transaction',
  rows: RawBuilder<unknown> = sql`true`,
): Promise<void> {
  // A statement waits here without a lock, so that lock_timeout does not end it.
  await sql`create function wait_for_test() returns boolean language plpgsql as $$ begin
    while not pg_try_advisory_xact_lock_shared(1) loop perform pg_sleep(0.01); end loop;
    return true; end $$`.execute(db)
  const restore = () => sql`drop function if exists wait_for_test cascade`.execute(db)
  t.teardown(restore)
  await db.transaction().execute(async (holder) => {
    await sql`select pg_advisory_xact_lock(1)`.execute(holder)
    await sql`create policy blocked on ${sql.table(table)} as restrictive for select
      using (case when ${rows} then (select wait_for_test()) else true end)`.execute(db)
    await use()
  })
  await restore()
}

/** Locks a table against every reader while `use` runs. */
export async function withLockedTable(
  db: Kysely<Tables>,
  table: string,
  use: () => Promise<void>,
): Promise<void> {
  await db.transaction().execute(async (holder) => {
    await sql`lock table ${sql.id(table)} in access exclusive mode`.execute(holder)
    await use()
  })
}
