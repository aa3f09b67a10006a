import t, { type Test } from 'tap'
import { connect } from '../../src/postgres/connect.ts'
import { Read } from '../../src/postgres/read.ts'
import { Session } from '../../src/postgres/session.ts'
import { createDatabase, readerOf } from '../support/database.ts'

/** The time that the fair queue counts for a read. The simulation has the other promises of a session. */

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

t.test('time of a read: without the reads before it', async (t) => {
  const { start, times } = await openSession(t, 2)
  const startedAt = performance.now()
  const [slow, fast] = [start(0.5), start(0)]
  await Promise.all([slow.promise, fast.promise])
  const elapsedMs = performance.now() - startedAt
  const [slowMs, fastMs] = [Number(times.get(slow)), Number(times.get(fast))]
  // PostgreSQL sleeps for at least this time, and no time is counted twice. A busy machine changes neither.
  t.ok(slowMs > 499, `${slowMs} ms`)
  t.ok(
    fastMs > 0 && slowMs + fastMs <= elapsedMs,
    `${slowMs} ms and ${fastMs} ms of ${elapsedMs} ms`,
  )
})
