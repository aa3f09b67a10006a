import { sql } from 'kysely'
import t from 'tap'
import { addCaller, addTransferOrders } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { get, log, db } = await startService(t)
const { connection, token } = await addCaller(db)
await addTransferOrders(db, connection, {})
await sql`create policy fails on assets_transfer_order as restrictive for select using (true)`.execute(
  db,
)

/** Makes each statement that reads transfer orders fail with this SQLSTATE. */
async function failWith(state: string) {
  await sql`create or replace function fail() returns boolean language plpgsql as $$ begin
    raise 'the reason' using errcode = ${sql.lit(state)}; end $$`.execute(db)
  await sql`alter policy fails on assets_transfer_order using (fail())`.execute(db)
}

t.test('state of the server: 503 with Retry-After', async (t) => {
  const states = ['08006', '53200', '57014', '58030', '55P03', '40001', '40P01']
  // Objects that a migration creates, and their rights.
  const behind = ['42P01', '42703', '42704', '42883', '42501', '3F000']
  for (const state of [...states, ...behind]) {
    await failWith(state)
    const response = await get(connection.orders, { token })
    t.equal(response.status, 503, state)
    t.match(response.headers.get('retry-after'), /^[1-9][0-9]*$/, state)
    t.notMatch(response.text, 'the reason')
  }
})

t.test('fault of the statement: 500', async (t) => {
  for (const state of ['22012', '42601', '42P02', '23505', '0A001', 'P0001', 'XX000']) {
    await failWith(state)
    const response = await get(connection.orders, { token })
    t.equal(response.status, 500, state)
    t.notMatch(response.text, 'the reason')
    t.ok(
      log.some((line) => line.includes(`"${state}"`)),
      `${state} is in the log`,
    )
  }
})
