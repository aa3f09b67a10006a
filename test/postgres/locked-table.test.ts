import { sql } from 'kysely'
import t from 'tap'
import { openDatabase } from '../../src/postgres/database.ts'
import { contextOf, createDatabase } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { url } = await createDatabase(t)
const owner = openAsOwner(t, url)
// A fifth of statementTimeoutMs is the lock timeout.
const limits = { size: 4, waitMs: 5_000, statementTimeoutMs: 1_000, pooler: false }
const db = openDatabase({ url, ...limits })
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
      const result = await db.read(locked, [], contextOf()).catch((error) => String(error.message))
      errors.add(typeof result === 'string' ? result : 'none')
      rejected += 1
      mostInUse = Math.max(mostInUse, db.state().primary.inUse)
      await new Promise(setImmediate)
    }
  }
  await owner.transaction().execute(async (holder) => {
    await sql`lock table app in access exclusive mode`.execute(holder)
    await t.rejects(db.read(locked, [], contextOf()), { cause: { code: '55P03' } })
    const readers = Promise.all(Array.from({ length: 20 }, readLocked))
    for (let n = 0; n < 100; n += 1) t.equal((await db.read(other, [], contextOf())).count, 1)
    isLocked = false
    await readers
  })
  t.same([...errors].sort(), ['a table of the statement is locked', 'the database did not respond'])
  t.ok(rejected > 100, `${rejected} reads rejected`)
  t.ok(mostInUse <= 2, `${mostInUse} connections: one waits, one serves the other reads`)
  t.equal((await db.read(locked, [], contextOf())).count, 1, 'the table is unlocked')
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
  const reasons = lines.filter(({ status }) => status === 503).map((line) => line.unavailableReason)
  t.same(reasons, Array(6).fill('database'))
})
