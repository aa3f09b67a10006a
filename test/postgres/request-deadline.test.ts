import t from 'tap'
import { openDatabase } from '../../src/postgres/database.ts'
import { ampleLimits, contextOf, createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

/** All reads of a request share one time limit. */
const { url } = await createDatabase(t)
const waitMs = 1_000
const limits = { size: 1, waitMs, statementTimeoutMs: 5_000, pooler: false, prepare: true }
const db = openDatabase({ ...ampleLimits, url, ...limits })
t.teardown(() => db.close())

const one = { name: 'one', title: 'one', text: 'select 1' }
const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep(2)' }

/** Reads for a request that began `msAgo` ago. */
async function read(statement: typeof one, msAgo: number): Promise<number> {
  return (await db.read(statement, [], contextOf({ msAgo }))).count
}

// PostgreSQL reports a damaged disk with this code.
const damaged = `do $$ begin perform pg_sleep(0.02); raise 'disk' using errcode = '58030'; end $$`
const failing = { name: '', title: 'failing', text: damaged }

t.test('state: failing after five failures since the start', async (t) => {
  const started = openDatabase({ ...ampleLimits, url, ...limits })
  t.teardown(() => started.close())
  const states: boolean[] = []
  for (let n = 0; n < 5; n += 1) {
    await t.rejects(started.read(failing, [], contextOf()), { name: 'Unavailable' })
    states.push(started.state().primary.failing)
  }
  t.same(states, [false, false, false, false, true])
})

t.test('Unavailable: a read after the time limit of its request', async (t) => {
  t.equal(await read(one, 0), 1)
  t.equal(await read(one, waitMs / 2), 1)
  await t.rejects(read(one, waitMs + 1), {
    name: 'Unavailable',
    message: /no time is left/,
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

t.test(
  'state: failing after failures that clients wait for, not after those of others',
  async (t) => {
    const fail = async (isGone: boolean) => {
      for (let n = 0; n < 8; n += 1) {
        const context = contextOf()
        const reading = t.rejects(db.read(failing, [], context), { name: 'Unavailable' })
        if (isGone) context.end(false)
        await reading
      }
      return db.state().primary.failing
    }
    // A success a second ago would count.
    await until('no success is counted', () => !db.state().primary.responding)
    t.equal(await fail(true), false)
    t.equal(await fail(false), true)
  },
)
