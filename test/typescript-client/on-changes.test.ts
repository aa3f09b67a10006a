import t, { type Test } from 'tap'
import { InvestmentData, PostgresStore, positions } from '../../clients/typescript/src/index.ts'
import { callerWithRows, changeRows } from '../support/clients/copied-rows.ts'
import { cashOf, failureOf, startStoreDrivers } from '../support/clients/drivers.ts'
import { startFaultProxy } from '../support/clients/fault-proxy.ts'
import { openPlace, type Place } from '../support/clients/places.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { needsProgram, run } from '../support/programs.ts'
import type { Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/**
 * `onChanges` reads the state that it commits, and writes it to tables of the app: the same in SQLite and PostgreSQL, and for all
 * clients.
 */
if (process.env.CLIENTS === 'all')
  await needsProgram(t, PYTHON, 'python3-psycopg-pool', ['-c', 'import psycopg_pool'])

const service = await startService(t)
const { url } = await createDatabase(t)
const drivers = {
  SQLite: startStoreDrivers(t, 'SQLite'),
  PostgreSQL: startStoreDrivers(t, 'PostgreSQL'),
}
/** Every use of a store is through one connection. */
const poolSize = 1

/** Tables of the app in a copy, in an order. */
async function ownTables({ query }: Place) {
  return {
    positions: await query('select portfolio, investment, shares from own_position order by 1, 2'),
    cash: (await query('select currency, total from own_cash order by 1')).map((row) => ({
      ...row,
      total: withoutZeros(row.total),
    })),
  }
}

const withoutZeros = (total: unknown) => String(total).replace(/\.?0+$/, '')

/** What the tables of the app are for the lists of the service. */
async function expectedTables(caller: Caller, place: Place) {
  const found = await drivers.SQLite.TypeScript.here.read(place.file, 'mine', 'positions')
  const cash = cashOf((await readList(service, caller, 'account')) as never)
  return {
    positions: found
      .map(({ portfolioId: portfolio, investment, shares }) => ({ portfolio, investment, shares }))
      .sort((a, b) =>
        `${a.portfolio} ${a.investment}` < `${b.portfolio} ${b.investment}` ? -1 : 1,
      ),
    cash: cash
      .map(([currency, total]) => ({ currency, total: withoutZeros(total) }))
      .sort((a, b) => (a.currency < b.currency ? -1 : 1)),
  }
}

async function expectTables(t: Test, caller: Caller, place: Place, words: string) {
  const own = await ownTables(place)
  t.strictSame(JSON.parse(JSON.stringify(own)), await expectedTables(caller, place), words)
}

for (const database of ['SQLite', 'PostgreSQL'] as const)
  for (const [language, { here: client, start }] of Object.entries(drivers[database])) {
    const name = `${language}, ${database}`
    const open = async () => {
      const caller = await callerWithRows(service, 6)
      const place = await openPlace(t, database, url)
      return { caller, place, access: { ...accessOf(service, caller), pageSize: 4 } }
    }

    for (const app of ['tables', 'outer'] as const)
      t.test(`${name}: tables of the app are those of the new state: ${app}`, async (t) => {
        const { caller, place, access } = await open()
        const options = { app, poolSize, history: true } as const
        await client.copy(access, place.file, 'mine', options)
        await expectTables(t, caller, place, 'the first copy')
        await changeRows(service, caller)
        await client.copy(access, place.file, 'mine', options)
        await expectTables(t, caller, place, 'changes')
        await changeRows(service, caller)
        const fault = (n: number) => (n === 0 ? 'expired' : 'none')
        const proxy = await startFaultProxy(t, { target: service.url, fault })
        const through = { ...accessOf(proxy, caller), pageSize: 4 }
        const { result } = await client.copy(through, place.file, 'mine', options)
        t.ok(result.portfolio.rebuilt)
        await expectTables(t, caller, place, 'a second copy that replaces the first one')
      })

    t.test(`${name}: killed in onChanges, and equal afterwards`, async (t) => {
      const { caller, place, access } = await open()
      await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
      for (const killAt of [1, 2]) {
        await changeRows(service, caller)
        const before = await ownTables(place)
        const program = start(t)
        const options = { app: 'tables', poolSize, killAt } as const
        await t.rejects(program.copy(access, place.file, 'mine', options), /has ended/)
        if (killAt === 1) t.strictSame(await ownTables(place), before, 'nothing is written')
        await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
        await expectTables(t, caller, place, `killed in call ${killAt}`)
      }
    })

    t.test(`${name}: an error after own writes undoes them`, async (t) => {
      const { caller, place, access } = await open()
      await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
      await changeRows(service, caller)
      const before = await ownTables(place)
      const options = { app: 'tables', poolSize, failAt: 1 } as const
      t.match(await failureOf(client.copy(access, place.file, 'mine', options)), {
        message: 'an error of the app',
      })
      t.strictSame(await ownTables(place), before)
      await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
      await expectTables(t, caller, place, 'again')
    })

    t.test(`${name}: the store of onChanges ends with its transaction`, async (t) => {
      const { place, access } = await open()
      const late = client.copy(access, place.file, 'mine', { app: 'late', poolSize })
      t.match(await failureOf(late), { name: 'CopyError', code: 'transaction_ended' })
      t.equal((await client.read(place.file, 'mine', 'portfolio')).length, 6, 'the copy is there')
    })

    // A function of SQLite in TypeScript and asyncio cannot wait for a synchronization.
    const writes = database === 'PostgreSQL' ? ['outer write', 'outer sync'] : ['outer write']
    for (const app of writes as ('outer write' | 'outer sync')[])
      t.test(`${name}: a store that writes inside onChanges: refused: ${app}`, async (t) => {
        const { place, access } = await open()
        const refused = client.copy(access, place.file, 'mine', { app, poolSize })
        t.match(await failureOf(refused), { name: 'CopyError', code: 'transaction_open' })
        t.same(await client.read(place.file, 'mine', 'portfolio'), [], 'nothing is written')
      })

    t.test(`${name}: the time limit of the call holds in onChanges`, async (t) => {
      const { caller, place, access } = await open()
      await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
      await changeRows(service, caller)
      const before = await ownTables(place)
      const limited = { ...access, callTimeoutMs: 1500 }
      const hanging = client.copy(limited, place.file, 'mine', { app: 'hang', poolSize })
      t.match(await failureOf(hanging), { name: 'TransportError', code: 'call_timeout' })
      t.strictSame(await ownTables(place), before)
      t.equal((await client.read(place.file, 'mine', 'portfolio')).length, 6, 'nothing is written')
      await client.copy(access, place.file, 'mine', { app: 'tables', poolSize })
      await expectTables(t, caller, place, 'again')
    })
  }

const connectionOf = (caller: Caller, callTimeoutMs?: number) => {
  const limits = callTimeoutMs === undefined ? {} : { callTimeoutMs }
  const api = new InvestmentData({ baseUrl: service.url, token: caller.token, ...limits })
  return api.connection(caller.connection.token)
}

t.test('TypeScript, PostgreSQL: 40 jobs on a pool of 10 end', async (t) => {
  const caller = await callerWithRows(service, 3)
  const place = await openPlace(t, 'PostgreSQL', url)
  const pool = openPool(t, place.file, { max: 10 })
  await pool.query('create table seen (name text, inside int, outside int)')
  const job = async (name: string) => {
    const store = new PostgresStore(pool, name)
    await connectionOf(caller).syncTransactions(store, {
      onChanges: async (changes, client) => {
        const [inside, outside] = [await positions(changes.store), await positions(store)]
        await client.query('insert into seen values ($1, $2, $3)', [
          name,
          inside.length,
          outside.length,
        ])
      },
    })
  }
  await Promise.all(Array.from({ length: 40 }, (_, index) => job(`user ${index}`)))
  const [seen] = await place.query(`select count(distinct name)::int as names,
    bool_and(inside = outside and inside > 0) as equal from seen`)
  t.same(seen, { names: 40, equal: true })
})

t.test('TypeScript, PostgreSQL: the time limit holds where a pool is exhausted', async (t) => {
  const caller = await callerWithRows(service, 3)
  const place = await openPlace(t, 'PostgreSQL', url)
  const pool = openPool(t, place.file, { max: 1 })
  const store = new PostgresStore(pool, 'mine')
  const limited = connectionOf(caller, 1000)
  const expected = { name: 'TransportError', code: 'call_timeout' }

  const held = await pool.connect()
  await t.rejects(limited.syncTransactions(store), expected, 'another user of the pool')
  held.release()

  // A statement of the app on the pool waits for the client of the transaction, which waits for it.
  const late: Promise<unknown>[] = []
  const onChanges = async (_: object, client: { query(sql: string): Promise<unknown> }) => {
    try {
      const query = pool.query('select 1')
      late.push(query)
      await query
    } finally {
      late.push(client.query('create table too_late ()').catch((error) => error))
    }
  }
  await t.rejects(limited.syncTransactions(store, { onChanges }), expected, 'the pool inside')
  await Promise.all(late)
  t.match(await late[1], { message: /not queryable|closed/ }, 'the client is closed')
  t.same(await place.query(`select to_regclass('too_late') as name`), [{ name: null }])
  const { portfolio } = await connectionOf(caller).syncTransactions(store)
  t.equal(portfolio.totalItems, 3)
})

t.test('TypeScript, PostgreSQL: a signal ends a call inside onChanges', async (t) => {
  const caller = await callerWithRows(service, 3)
  const place = await openPlace(t, 'PostgreSQL', url)
  const store = new PostgresStore(openPool(t, place.file, { max: 1 }), 'mine')
  const controller = new AbortController()
  const onChanges = () => {
    controller.abort(new Error('the user has left'))
    return new Promise<void>(() => {})
  }
  const { signal } = controller
  const ended = connectionOf(caller).syncTransactions(store, { onChanges, signal })
  await t.rejects(ended, { message: 'the user has left' })
  t.equal(await store.count('portfolio_transactions', 'current'), 0)
})

const PYTHON_JOBS = {
  threads: `
from concurrent.futures import ThreadPoolExecutor
from investment_data import InvestmentData, PostgresStore, positions
from psycopg_pool import ConnectionPool
api = InvestmentData(URL, TOKEN)
with ConnectionPool(DATABASE, min_size=10, max_size=10) as pool:
    def job(index):
        store = PostgresStore(pool, f"user {index}")
        def on_changes(changes, connection):
            counts = (index, len(positions(changes.store)), len(positions(store)))
            connection.execute("insert into seen values (%s, %s, %s)", counts)
        api.connection(CONNECTION).sync_transactions(store, on_changes=on_changes)
    with ThreadPoolExecutor(40) as threads:
        list(threads.map(job, range(40)))
`,
  asyncio: `
import asyncio
from investment_data import AsyncInvestmentData, AsyncPostgresStore, positions
from psycopg_pool import AsyncConnectionPool
async def main():
    async with AsyncInvestmentData(URL, TOKEN) as api, AsyncConnectionPool(DATABASE, min_size=10, max_size=10) as pool:
        async def job(index):
            store = AsyncPostgresStore(pool, f"user {index}")
            async def on_changes(changes, connection):
                counts = (index, len(await positions(changes.store)), len(await positions(store)))
                await connection.execute("insert into seen values (%s, %s, %s)", counts)
            await api.connection(CONNECTION).sync_transactions(store, on_changes=on_changes)
        await asyncio.gather(*map(job, range(40)))
asyncio.run(main())
`,
}

const PYTHON_LIMIT = `
from investment_data import InvestmentData, PostgresStore, TransportError
from psycopg_pool import ConnectionPool
api = InvestmentData(URL, TOKEN, call_timeout=1)
with ConnectionPool(DATABASE, min_size=1) as pool:
    store = PostgresStore(pool, "mine")
    with pool.connection():
        try:
            api.connection(CONNECTION).sync_transactions(store)
        except TransportError as error:
            assert error.code == "call_timeout", error.code
        else:
            raise AssertionError("the call has not ended")
    InvestmentData(URL, TOKEN).connection(CONNECTION).sync_transactions(store)
    assert len(list(store.portfolio_transactions())) == 3
    with pool.connection() as connection:
        assert not connection.autocommit
`

/** Runs a program that has `URL`, `TOKEN`, `CONNECTION` and `DATABASE`. A warning of Python is an error. */
function python(caller: Caller, place: Place, program: string) {
  const values = {
    URL: service.url,
    TOKEN: caller.token,
    CONNECTION: caller.connection.token,
    DATABASE: place.file,
  }
  const lines = Object.entries(values).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  const source = `${lines.join('\n')}\n${program}`
  return run(PYTHON, ['-W', 'error', '-c', source], { env: pythonEnvironment })
}

if (process.env.CLIENTS === 'all') {
  t.test('Python, PostgreSQL: the time limit holds where a pool is exhausted', async (t) => {
    const caller = await callerWithRows(service, 3)
    await python(caller, await openPlace(t, 'PostgreSQL', url), PYTHON_LIMIT)
    t.pass('the program has compared all')
  })

  for (const [kind, program] of Object.entries(PYTHON_JOBS))
    t.test(`Python, PostgreSQL: 40 jobs on a pool of 10 end: ${kind}`, async (t) => {
      const caller = await callerWithRows(service, 3)
      const place = await openPlace(t, 'PostgreSQL', url)
      await place.query('create table seen (name int, inside int, outside int)')
      await python(caller, place, program)
      const [seen] = await place.query(`select count(distinct name)::int as names,
        bool_and(inside = outside and inside > 0) as equal from seen`)
      t.same(seen, { names: 40, equal: true })
    })
}
