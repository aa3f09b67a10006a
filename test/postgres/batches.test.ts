import t, { type Test } from 'tap'
import { type DatabaseOptions, openDatabase } from '../../src/postgres/database.ts'
import type { Parameter } from '../../src/postgres/statements.ts'
import { createDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

/** Reads that come up at the same time share round trips; none may notice. */

const echo = { name: 'echo', title: 'echo', text: 'select $1::text || generate_series(1, $2::int)' }
const divide = { name: 'divide', title: 'divide', text: 'select 12 / $1::int' }
const kill = {
  name: 'kill',
  title: 'kill',
  text: `select case when $1::text = 'it' then pg_terminate_backend(pg_backend_pid())::text else $1 end`,
}
const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep($1::float8)::text || $1' }

t.test('Each read gets its own rows', async (t) => {
  const { ask } = await open(t)
  const reads = Array.from({ length: 40 }, (_, n) => ask(echo, [`${n}:`, String(n % 7)]))
  const expected = reads.map((_, n) => Array.from({ length: n % 7 }, (_, row) => `${n}:${row + 1}`))
  t.same(await Promise.all(reads), expected)
})

t.test('They share connections', async (t) => {
  const { ask, db } = await open(t)
  await Promise.all(Array.from({ length: 16 }, () => ask(echo, ['', '1'])))
  t.equal(db.state().primary.connections, 2)
})

t.test('Connections in use are counted, not those who ask over them', async (t) => {
  const { ask, db } = await open(t)
  const reads = Array.from({ length: 10 }, () => ask(sleep, ['0.1']))
  await until('two connections are in use', () => db.state().primary.inUse === 2)
  t.match(db.state().primary, { connections: 2, inUse: 2 })
  await Promise.all(reads)
  t.match(db.state().primary, { connections: 2, inUse: 0 })
})

t.test('One that fails takes no other with it', async (t) => {
  const { ask } = await open(t)
  const divisors = ['1', '2', '0', '3', '4', '0', '6', '12']
  const ends = await Promise.allSettled(divisors.map((divisor) => ask(divide, [divisor])))
  for (const [n, end] of ends.entries()) {
    if (divisors[n] === '0') t.match(end, { reason: { message: 'division by zero' } })
    else t.match(end, { value: [String(12 / Number(divisors[n]))] })
  }
})

t.test('Nor does one that breaks the connection', async (t) => {
  const { ask } = await open(t)
  const ends = await Promise.allSettled(['a', 'it', 'b', 'c', 'd'].map((word) => ask(kill, [word])))
  for (const n of [0, 2, 3, 4]) t.equal(ends[n]?.status, 'fulfilled')
  t.match(ends[1], { reason: { name: 'HostFailed' } })
})

t.test('Nor one that is too slow', async (t) => {
  const { ask } = await open(t, { statementTimeoutMs: 500 })
  const ends = await Promise.allSettled(['0', '30', '0.1', '0'].map((time) => ask(sleep, [time])))
  t.match(ends[1], { reason: { name: 'DatabaseUnavailable' } })
  for (const n of [0, 2, 3]) t.equal(ends[n]?.status, 'fulfilled')
})

t.test('Where the server is slow, each goes alone', async (t) => {
  const { ask, db } = await open(t, { statementTimeoutMs: 800 })
  await ask(sleep, ['0.2'])
  const reads = Promise.all(Array.from({ length: 6 }, () => ask(sleep, ['0.5'])))
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.equal(db.state().primary.inUse, 6)
  t.equal((await reads).length, 6)
})

async function open(t: Test, options: Partial<DatabaseOptions> = {}) {
  const { url } = await createDatabase(t)
  const usual = { size: 10, waitMs: 1_000, statementTimeoutMs: 5_000, pooler: false, prepare: true }
  const db = openDatabase({ url, ...usual, ...options })
  t.teardown(() => db.close())
  const ask = async (statement: typeof echo, values: Parameter[]) => {
    const rows = await db.read(statement, values)
    const found: (string | null | undefined)[] = []
    while (rows.count > 0) found.push(rows.shift()?.[0])
    return found
  }
  return { db, ask }
}
