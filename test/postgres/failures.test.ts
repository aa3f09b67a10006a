import { sql } from 'kysely'
import t from 'tap'
import { Database } from '../../src/postgres/database.ts'
import { createDatabase, readerOf } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
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

t.test('deadline of a request', async (t) => {
  /** All reads of a request share one time limit. */
  const { url } = await createDatabase(t)
  const statementTimeoutMs = 4_000
  const db = new Database({ url, size: 1, statementTimeoutMs, pooler: false })
  t.teardown(() => db.close())

  const one = { name: 'one', title: 'one', text: 'select 1' }
  const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep(2)' }

  /** Reads for a request that began `msAgo` ago. */
  async function read(statement: typeof one, msAgo: number): Promise<number> {
    return (await db.read(statement, [], readerOf({ msAgo }))).count
  }

  t.test('Unavailable: a read after the time limit of its request', async (t) => {
    t.equal(await read(one, 0), 1)
    t.equal(await read(one, statementTimeoutMs / 2), 1)
    await t.rejects(read(one, statementTimeoutMs + 1), {
      name: 'Unavailable',
      message: /no database connection became free/,
    })
  })

  t.test('Unavailable: a read waits only for the rest of its time limit', async (t) => {
    // One connection takes two reads at a time, so there is no place left until the first of them ends.
    const busy = Promise.all([read(sleep, 0), read(sleep, 0)])
    const rejected: string[] = []
    const waits = (name: string, msAgo: number) =>
      t.rejects(
        read(one, msAgo).finally(() => rejected.push(name)),
        { message: /no database connection became free/ },
      )
    await Promise.all([
      waits('begun before', statementTimeoutMs - 1_000),
      waits('begun long ago', statementTimeoutMs - 100),
    ])
    t.same(rejected, ['begun long ago', 'begun before'])
    t.equal((await busy).length, 2)
  })
})

t.test('locked table', async (t) => {
  const { url } = await createDatabase(t)
  const owner = openAsOwner(t, url)
  // A fifth of statementTimeoutMs is the lock timeout.
  const db = new Database({ url, size: 4, statementTimeoutMs: 5_000, pooler: false })
  t.teardown(() => db.close())

  const locked = { name: 'locked', title: 'locked', text: 'select count(*) from app' }
  const other = { name: 'other', title: 'other', text: 'select count(*) from connection' }

  t.test('Unavailable: at most one read at a time waits for a locked table', async (t) => {
    const errors = new Set<string>()
    let rejected = 0
    let mostInUse = 0
    let isLocked = true
    const readLocked = async () => {
      while (isLocked) {
        const result = await db.read(locked, [], readerOf()).catch((error) => String(error.message))
        errors.add(typeof result === 'string' ? result : 'none')
        rejected += 1
        mostInUse = Math.max(mostInUse, db.state().primary.inUse)
        await new Promise(setImmediate)
      }
    }
    await owner.transaction().execute(async (holder) => {
      await sql`lock table app in access exclusive mode`.execute(holder)
      await t.rejects(db.read(locked, [], readerOf()), { cause: { code: '55P03' } })
      const readers = Promise.all(Array.from({ length: 20 }, readLocked))
      for (let n = 0; n < 100; n += 1) t.equal((await db.read(other, [], readerOf())).count, 1)
      isLocked = false
      await readers
    })
    t.same([...errors].sort(), [
      'a table of the statement is locked',
      'the database did not respond',
    ])
    t.ok(rejected > 100, `${rejected} reads rejected`)
    t.ok(mostInUse <= 2, `${mostInUse} connections: one waits, one serves the other reads`)
    t.equal((await db.read(locked, [], readerOf())).count, 1, 'the table is unlocked')
  })

  t.test('503 of a locked table: a failure of the database, not overload', async (t) => {
    const service = await startService(t, { environment: { STATEMENT_TIMEOUT_MS: '1000' } })
    const { connection, token } = await addCaller(service.db)
    const statusOf = async () => (await service.get(connection.orders, { token })).status
    t.equal(await statusOf(), 200)
    await service.db.transaction().execute(async (holder) => {
      await sql`lock table assets_transfer_order in access exclusive mode`.execute(holder)
      t.equal(await statusOf(), 503)
      t.same(await Promise.all(Array.from({ length: 5 }, statusOf)), Array(5).fill(503))
    })
    const lines = service.log.map((line) => JSON.parse(line))
    t.ok(lines.some(({ reason }) => reason === 'a table of the statement is locked'))
    const reasons = lines
      .filter(({ status }) => status === 503)
      .map((line) => line.unavailableReason)
    t.same(reasons, Array(6).fill('database'))
  })
})
