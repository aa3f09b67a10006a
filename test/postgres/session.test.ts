import t, { type Test } from 'tap'
import { connect } from '../../src/postgres/connect.ts'
import { Read } from '../../src/postgres/read.ts'
import { Session } from '../../src/postgres/session.ts'
import { createDatabase, readerOf } from '../support/database.ts'

/** The reads in flight on one connection of a real PostgreSQL. */

const { url } = await createDatabase(t)
const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep($1::float8)' }

async function openSession(t: Test, depth: number) {
  const client = await connect({ url, statementTimeoutMs: 5_000, pooler: false })
  t.teardown(() => client.destroy())
  const session = new Session(client, depth)
  /** Times for which PostgreSQL worked, by read. */
  const times = new Map<Read, number>()
  const start = (seconds: number) => {
    const read = new Read(sleep, [String(seconds)], 5_000, readerOf())
    session.start(read, sleep, (_read, ms, error, rows) => {
      times.set(read, ms)
      read.end(error, rows)
    })
    return read
  }
  return { session, start, times }
}

t.test('reads in flight: in the order of PostgreSQL, up to the depth', async (t) => {
  const { session, start } = await openSession(t, 2)
  t.ok(session.hasRoom)
  const [first, second] = [start(0), start(0.5)]
  t.equal(session.oldest, first)
  t.equal(session.size, 2)
  t.notOk(session.hasRoom)
  await first.promise
  t.equal(session.oldest, second)
  t.ok(session.hasRoom)
  await second.promise
  t.equal(session.size, 0)
})

t.test('time of a read: without the reads before it', async (t) => {
  const { start, times } = await openSession(t, 2)
  const [slow, fast] = [start(0.5), start(0)]
  await Promise.all([slow.promise, fast.promise])
  const slowMs = Number(times.get(slow))
  t.ok(slowMs > 400, `${slowMs} ms`)
  t.ok(Number(times.get(fast)) < slowMs / 2, `${times.get(fast)} ms`)
})

t.test('exclusive read: no other one shares the session', async (t) => {
  const { session, start } = await openSession(t, 8)
  const read = start(0.05)
  t.ok(session.hasRoom)
  read.isExclusive = true
  t.notOk(session.hasRoom)
  await read.promise
  t.ok(session.hasRoom)
})

t.test('retire: the session closes when its last read has ended', async (t) => {
  const { session, start } = await openSession(t, 8)
  const read = start(0.05)
  t.notOk(session.retire())
  t.notOk(session.hasRoom)
  await read.promise
  t.ok(session.retire())
})

t.test('abandon: its reads are returned, and their end is not reported', async (t) => {
  const { session, start, times } = await openSession(t, 8)
  const reads = [start(5), start(0)]
  const found = session.abandon()
  t.same(found.reads, reads)
  t.match(found.error, { name: 'ServerFailed' })
  t.equal(session.size, 0)
  await new Promise((resolve) => session.client.once('end', resolve))
  t.equal(times.size, 0)
})
