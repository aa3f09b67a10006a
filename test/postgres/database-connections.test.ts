import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { connect as connectTo } from '../../src/postgres/connect.ts'
import { Database, type DatabaseOptions } from '../../src/postgres/database.ts'
import { Pool } from '../../src/postgres/pool.ts'
import { compile, type Parameter } from '../../src/postgres/statements.ts'
import { createDatabase, openClient, readerOf } from '../support/database.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const echo = { name: 'echo', title: 'echo', text: 'select $1::text || generate_series(1, $2::int)' }
const divide = { name: 'divide', title: 'divide', text: 'select 12 / $1::int' }
const kill = {
  name: 'kill',
  title: 'kill',
  text: `select case when $1::text = 'it' then pg_terminate_backend(pg_backend_pid())::text else $1 end`,
}
const sleep = { name: 'sleep', title: 'sleep', text: 'select pg_sleep($1::float8)::text || $1' }
const setting = {
  name: 'setting',
  title: 'setting',
  text: `select coalesce(current_setting('service.test', true), '') || '>'
    || set_config('service.test', $1::text, true)`,
}
const pid = { name: 'pid', title: 'pid', text: 'select pg_backend_pid()' }
const missing = { name: 'missing', title: 'missing', text: 'select $1::text from no_such_table' }

/** Ends when the test releases the lock. */
const held = { name: 'held', title: 'held', text: 'select held($1::bigint)' }

// A database for each test would take most of the time.
const { url } = await createDatabase(t)
const locks = await openClient(t, url)
// lock_timeout does not apply to attempts.
await locks.query(`create function held(lock bigint) returns bigint language plpgsql as $$ begin
  while not pg_try_advisory_xact_lock_shared(lock) loop perform pg_sleep(0.01); end loop;
  return lock; end $$`)
const hold = (lock: number) => locks.query('select pg_advisory_lock($1)', [lock])
const release = (lock: number) => locks.query('select pg_advisory_unlock($1)', [lock])

t.test('200 concurrent reads: each gets its own rows, in order', async (t) => {
  const { read } = await open(t)
  const reads = Array.from({ length: 200 }, (_, n) => read(echo, [`${n}:`, String(n % 7)]))
  const expected = reads.map((_, n) => Array.from({ length: n % 7 }, (_, row) => `${n}:${row + 1}`))
  t.same(await Promise.all(reads), expected)
})

t.test('failed read: concurrent reads on its connection succeed', async (t) => {
  const { read } = await open(t)
  const divisors = ['1', '2', '0', '3', '4', '0', '6', '12']
  const results = await Promise.allSettled(divisors.map((divisor) => read(divide, [divisor])))
  for (const [n, result] of results.entries()) {
    if (divisors[n] === '0') t.match(result, { reason: { message: 'division by zero' } })
    else t.match(result, withLengths({ value: [String(12 / Number(divisors[n]))] }))
  }
})

t.test('unparsable statement: concurrent reads on its connection succeed', async (t) => {
  const { read } = await open(t, { size: 1 })
  const reads = [
    read(echo, ['a', '1']),
    read(missing, ['b']),
    read(missing, ['c']),
    read(echo, ['d', '1']),
  ]
  const results = await Promise.allSettled(reads)
  t.match(results[0], withLengths({ value: ['a1'] }))
  for (const n of [1, 2]) t.match(results[n], { reason: { cause: { code: '42P01' } } })
  t.match(results[3], withLengths({ value: ['d1'] }))
})

t.test('read that breaks its connection: the other reads are repeated', async (t) => {
  const { read } = await open(t, { size: 1 })
  const words = ['a', 'it', 'b', 'c', 'd']
  const results = await Promise.allSettled(words.map((word) => read(kill, [word])))
  for (const n of [0, 2, 3, 4]) t.match(results[n], withLengths({ value: [words[n]] }))
  t.match(results[1], { reason: { name: 'ServerFailed' } })
})

t.test('read that is too slow: later reads get their rows', async (t) => {
  const { read } = await open(t, { size: 1, statementTimeoutMs: 500 })
  const results = await Promise.allSettled(['0', '30', '0.1'].map((s) => read(sleep, [s])))
  t.match(results[1], { reason: { name: 'Unavailable' } })
  for (const n of [0, 2]) t.equal(results[n]?.status, 'fulfilled')
  t.same(await read(sleep, ['0']), ['0'])
})

t.test('connection that is never idle: it stays while its reads end', async (t) => {
  const { read } = await openPool(t, { size: 1, silentMs: 700 })
  const before = await read(pid, [])
  await Promise.all(Array.from({ length: 8 }, () => read(sleep, ['0.2'])))
  t.same(await read(pid, []), before)
})

t.test('slow reads on all connections: the next read waits for the first one to end', async (t) => {
  const { read, pool } = await openPool(t, { size: 2 })
  const order: string[] = []
  const note = (name: string, reading: Promise<unknown>) => reading.then(() => order.push(name))
  await Promise.all([1, 2].map(hold))
  const slow = [note('slow', read(held, ['1']))]
  await until('the read is in flight', () => pool.state().inUse === 1)
  slow.push(note('slowest', read(held, ['2'])))
  await until('both reads are in flight', () => pool.state().inUse === 2)
  // Both connections count as stalled after 250 ms.
  await setTimeout(400)
  const next = note('next', read(echo, ['a', '1']))
  await setTimeout(100)
  t.same(order, [])
  await release(1)
  await next
  await release(2)
  await Promise.all(slow)
  t.same(order, ['slow', 'next', 'slowest'])
})

t.test('one connection breaks: the idle ones stay, and serve the next reads', async (t) => {
  const owner = await openClient(t, url)
  const { read, db } = await open(t, { size: 5, url })
  await openThreeConnections({ read, db })
  t.equal(db.state().primary.connections, 3)
  await hold(8)
  const broken = read(held, ['8'])
  let active: { pid: number }[] = []
  // A connection whose read has just ended may still be active. Ended once only: the read is repeated once.
  await until('only the read is active', async () => {
    const { rows } = await owner.query(`select pid from pg_stat_activity
      where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
      and backend_type = 'client backend'`)
    active = rows
    return active.length === 1
  })
  await owner.query('select pg_terminate_backend($1)', [active[0]?.pid])
  await release(8)
  t.same(await broken, ['8'], 'repeated on another connection')
  t.equal(db.state().primary.connections, 2)
})

t.test('two connections break while the server responds: the idle one stays', async (t) => {
  const { read, db } = await open(t, { size: 5 })
  await openThreeConnections({ read, db })
  await t.rejects(read(kill, ['it']), { name: 'ServerFailed' })
  t.equal(db.state().primary.connections, 1)
})

t.test('health check: it does not wait behind reads that wait for a connection', async (t) => {
  const { db, read } = await open(t)
  const reads = Array.from({ length: 40 }, () => read(sleep, ['0.05']))
  const order: string[] = []
  const last = Promise.all(reads).then(() => order.push('reads'))
  t.same((await db.probe(echo, ['a', '1'])).shift(), ['a1'])
  order.push('health check')
  await last
  t.same(order, ['health check', 'reads'])
})

t.test('connection limit of the role: open connections serve all reads', async (t) => {
  const owner = await openClient(t, url)
  await owner.query(`create role limited login password 'limited' connection limit 4`)
  t.teardown(() => owner.query('drop role limited'))
  const login = Object.assign(new URL(url), { username: 'limited', password: 'limited' })
  let attempts = 0
  const through = await startTcpProxy(t, login.href, (client) => {
    attempts += 1
    const server = connect(Number(login.port), login.hostname)
    client.pipe(server).pipe(client)
    client.on('close', () => server.destroy())
  })
  const { db, read } = await open(t, { size: 10, url: through.href })
  const sleepTwice = async () => {
    for (let turn = 0; turn < 20; turn += 1) await read(sleep, ['0.05'])
  }
  await Promise.all(Array.from({ length: 20 }, sleepTwice))
  // After a refused connection, one attempt a second.
  t.ok(attempts < 40, `${attempts} attempts`)
  t.same((await db.probe(echo, ['a', '1'])).shift(), ['a1'], 'also the health check')
  await db.close()
})

t.test('reads on one connection: each is a separate transaction', async (t) => {
  const { read } = await open(t, { size: 1 })
  const reads = ['first', 'second', 'third'].map((name) => read(setting, [name]))
  t.same(await Promise.all(reads), [['>first'], ['>second'], ['>third']])
})

t.test('large read: small reads continue', async (t) => {
  const { read, db } = await open(t)
  await hold(3)
  const large = db.read(held, ['3'], readerOf({ rows: 5_000 }))
  const small = Array.from({ length: 20 }, () => read(echo, ['small', '1']))
  t.same(await Promise.all(small), Array(20).fill(['small1']))
  await release(3)
  t.equal((await large).count, 1)
})

t.test('large reads: together they use one in ten connections, at least two', async (t) => {
  const { read, db } = await open(t, { size: 21 })
  const readers = Array.from({ length: 6 }, () => readerOf({ rows: 5_000 }))
  const large = readers.map((reader) => db.read(sleep, ['0.2'], reader))
  let mostInUse = 0
  const watching = setInterval(() => {
    mostInUse = Math.max(mostInUse, db.state().primary.inUse)
  }, 5)
  await Promise.all(large)
  clearInterval(watching)
  // Rounded up.
  t.equal(mostInUse, 3)
  t.same(await read(echo, ['small', '1']), ['small1'])
})

t.test(
  'overloaded replica: the primary serves the reads until the others have ended',
  async (t) => {
    // Any server may be a replica. The reads compare its data with those of the primary.
    const { db } = await open(t, { replicaUrl: url })
    const replica = db.replica()
    if (replica === undefined) throw new Error('the replica is not used')
    await hold(4)
    const reads = Array.from({ length: 10 }, () => replica.read(held, ['4'], readerOf()))
    await until('more reads wait than the replica has connections', () => {
      const [state] = db.state().replicas
      return state !== undefined && state.waiting > 3
    })
    t.equal(db.replica(), undefined)
    await release(4)
    t.same(
      (await Promise.all(reads)).map((rows) => rows?.count),
      Array(10).fill(1),
    )
    t.equal(db.replica(), replica)
  },
)

t.test('connection that lost its plan: it does not return to the pool', async (t) => {
  const owner = await openClient(t, url)
  await owner.query('create table changed as select 1 as value')
  const { read } = await openPool(t, { size: 1 })
  const changed = { name: 'changed', title: 'changed', text: 'select * from changed' }
  const before = await read(pid, [])
  t.same(await read(changed, []), ['1'])
  t.same(await read(pid, []), before)
  await owner.query('alter table changed alter value type text')
  t.same(await read(changed, []), ['1'], 'repeated without a plan')
  t.notSame(await read(pid, []), before)
})

t.test('statements of two releases with the same title: each runs its own text', async (t) => {
  const { read } = await open(t, { size: 1 })
  const [old, next] = ['1', '2'].map((value) =>
    compile('page', 'Reads a value.', sql.raw(`select ${value}`)),
  )
  if (!old || !next) throw new Error('not compiled')
  t.equal(old.title, next.title)
  t.not(old.name, next.name)
  t.same([await read(old, []), await read(next, [])], [['1'], ['2']])
})

t.test('pool of one connection: large reads run between small ones', async (t) => {
  const { read, db } = await open(t, { size: 1 })
  let busy = true
  const small = Array.from({ length: 4 }, async () => {
    while (busy) await read(sleep, ['0.005'])
  })
  t.equal((await db.read(echo, ['x', '3'], readerOf({ rows: 5_000 }))).count, 3)
  busy = false
  await Promise.all(small)
})

/** Opens a pool whose reads may wait for three seconds. */
async function openPool(t: Test, options: { size: number; silentMs?: number }) {
  const connecting = { url, statementTimeoutMs: 5_000, connectMs: 60_000, pooler: false }
  const usual = { waitMs: 3_000, silentMs: 6_000, pooler: false }
  const pool = new Pool({ ...usual, ...options }, () => connectTo(connecting))
  t.teardown(() => pool.close())
  /** @param msAgo time since the start of its request, which may take 3 s and silentMs */
  const read = async (statement: typeof echo, values: Parameter[], msAgo = 0) =>
    (await pool.read(statement, values, readerOf({ msAgo }))).shift()
  return { read, pool }
}

/** Opens three connections: each of three reads needs one of its own. */
async function openThreeConnections({ read, db }: Awaited<ReturnType<typeof open>>) {
  const reads: Promise<unknown>[] = []
  await hold(7)
  for (let n = 0; n < 3; n += 1) {
    reads.push(read(held, ['7']))
    await until('the read is in flight', () => db.state().primary.inUse === n + 1)
  }
  await release(7)
  await Promise.all(reads)
}

async function open(t: Test, options: Partial<DatabaseOptions> = {}) {
  // Two of them are for large reads.
  const usual = {
    size: 4,
    connectMs: 60_000,
    statementTimeoutMs: 60_000,
    pooler: false,
  }
  const db = new Database({ url, ...usual, ...options })
  t.teardown(() => db.close())
  const read = async (statement: typeof echo, values: Parameter[]) => {
    const rows = await db.read(statement, values, readerOf())
    const found: (string | null | undefined)[] = []
    while (rows.count > 0) found.push(rows.shift()?.[0])
    return found
  }
  return { db, read }
}
