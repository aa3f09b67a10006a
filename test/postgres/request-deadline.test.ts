import t from 'tap'
import { openDatabase } from '../../src/postgres/database.ts'
import { contextOf, createDatabase } from '../support/database.ts'

/** All reads of a request share one time limit. */
const { url } = await createDatabase(t)
const waitMs = 1_000
const limits = { size: 1, waitMs, statementTimeoutMs: 5_000, pooler: false }
const db = openDatabase({ url, ...limits })
t.teardown(() => db.close())

const one = { name: 'one', title: 'one', text: 'select 1' }
const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep(2)' }

/** Reads for a request that began `msAgo` ago. */
async function read(statement: typeof one, msAgo: number): Promise<number> {
  return (await db.read(statement, [], contextOf({ msAgo }))).count
}

t.test('Unavailable: a read after the time limit of its request', async (t) => {
  t.equal(await read(one, 0), 1)
  t.equal(await read(one, waitMs / 2), 1)
  await t.rejects(read(one, waitMs + 1), {
    name: 'Unavailable',
    message: /no database connection became free/,
  })
})

t.test('Unavailable: a read waits only for the rest of its time limit', async (t) => {
  // One connection takes two reads at a time, so there is no place left.
  const busy = Promise.all([read(sleep, 0), read(sleep, 0)])
  const rejected: string[] = []
  const waits = (name: string, msAgo: number) =>
    t.rejects(
      read(one, msAgo).finally(() => rejected.push(name)),
      { message: /no database connection became free/ },
    )
  await Promise.all([waits('just begun', 0), waits('begun long ago', waitMs - 100)])
  t.same(rejected, ['begun long ago', 'just begun'])
  t.equal((await busy).length, 2)
})
