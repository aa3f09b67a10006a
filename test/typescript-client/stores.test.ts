import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { InvestmentData, PostgresStore } from '../../clients/typescript/src/index.ts'
import { callerWithRows as addRows, changeRows } from '../support/clients/copied-rows.ts'
import { countStatements } from '../support/clients/count-statements.ts'
import {
  type Database,
  type Driver,
  failureOf,
  startStoreDrivers,
} from '../support/clients/drivers.ts'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { newSchema, openPlace, openSchema, type Place, quoted } from '../support/clients/places.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { sorted } from '../support/clients/sqlite-copies.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { needsProgram, run } from '../support/programs.ts'
import { runs } from '../support/random.ts'
import { type Caller, listNames, lists } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

/**
 * The promises of a store, the same for SQLite and PostgreSQL, and for all clients: after each case, the copy equals the
 * lists.
 */
const ROOT = join(import.meta.dirname, '../..')
if (process.env.CLIENTS === 'all')
  await needsProgram(t, PYTHON, 'python3-psycopg-pool', ['-c', 'import psycopg_pool'])

const service = await startService(t)
const { db } = service
const drivers = {
  SQLite: startStoreDrivers(t, 'SQLite'),
  PostgreSQL: startStoreDrivers(t, 'PostgreSQL'),
}
const { url: copies } = await createDatabase(t)
const callerWithRows = (count: number) => addRows(service, count)
const change = (caller: Caller) => changeRows(service, caller)

/** Rounds of two programs at once. A round in PostgreSQL takes longer. */
const ROUNDS: Record<Database, number> = { SQLite: runs(20), PostgreSQL: runs(10) }

/** The typed readers of the store return what the service returns, in its order. */
async function compare(t: Test, client: Driver, caller: Caller, { file }: Place) {
  for (const list of listNames) {
    const found = await client.read(file, 'mine', list)
    t.strictSame(sorted(byName(found)), sorted(byName(await readList(service, caller, list))))
    const ids = (rows: Record<string, unknown>[]) => rows.map((row) => row[lists[list].id])
    t.strictSame(ids(found), ids(await readList(service, caller, list)), `${list}: order`)
  }
  const orders = await client.read(file, 'mine', 'orders')
  t.strictSame(
    sorted(byName(orders)),
    sorted(byName(await client.orders(accessOf(service, caller)))),
  )
}

/** Rows with their fields by name, because PostgreSQL keeps no order of fields. */
const byName = (rows: Record<string, unknown>[]) =>
  rows.map((row) => Object.fromEntries(Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1))))

for (const database of ['SQLite', 'PostgreSQL'] as const) {
  const open = (t: Test) => openPlace(t, database, copies)
  t.test(`${database}: all clients in turn keep one copy`, async (t) => {
    const caller = await callerWithRows(20)
    const place = await open(t)
    const access = { ...accessOf(service, caller), pageSize: 7 }
    const clients = Object.entries(drivers[database])
    for (let step = 0; step <= 2 * clients.length; step += 1) {
      const [name, { here: client }] = clients[step % clients.length] as (typeof clients)[number]
      const { result } = await client.copy(access, place.file, 'mine', { history: true })
      const counts = { inserted: step === 0 ? 20 : 2, updated: 0, removed: 0 }
      t.match(result.portfolio, { totalItems: 20 + 2 * step, rebuilt: step === 0, ...counts }, name)
      await compare(t, client, caller, place)
      const again = await client.copy(access, place.file, 'mine')
      t.match(again.result, { portfolio: { inserted: 0, rebuilt: false } })
      t.strictSame(again.told, [])
      await change(caller)
    }
  })

  for (const [language, { here: client }] of Object.entries(drivers[database])) {
    const name = `${language}, ${database}`

    t.test(`${name}: what has changed, with the rows as they were`, async (t) => {
      const caller = await callerWithRows(3)
      const place = await open(t)
      const access = accessOf(service, caller)
      await client.copy(access, place.file, 'mine', { history: true })
      const [row = {}] = await readList(service, caller, 'portfolio')
      const id = String(row.transactionId)
      const rowOf = db.updateTable('portfolio_transaction').where('transaction_id', '=', id)
      await rowOf.set({ amount: '7.100' }).execute()
      const { result, told } = await client.copy(access, place.file, 'mine', { history: true })
      t.match(result.portfolio, { inserted: 0, updated: 1, removed: 0 })
      t.equal(told.length, 1)
      t.match(told[0], { list: 'portfolio_transactions', previous: { [id]: row } })
      t.same(told[0]?.removed, [])
      t.equal(told[0]?.upserts[0]?.amount, '7.100')
      await db.deleteFrom('portfolio_transaction').where('transaction_id', '=', id).execute()
      const last = await client.copy(access, place.file, 'mine', { history: true })
      t.equal(last.told.length, 1)
      t.same(last.told[0]?.upserts, [])
      t.same(last.told[0]?.removed, [id])
      const changes = await place.query(
        `select change, field, before, after from investment_changes where field = 'amount' order by number`,
      )
      t.match(
        changes,
        withLengths([
          { change: 'updated', before: row.amount, after: '7.100' },
          { change: 'removed', before: '7.100', after: null },
        ]),
      )
      await client.read(place.file, 'mine', 'delete')
      t.strictSame(await client.read(place.file, 'mine', 'portfolio'), [])
      const history = 'select * from investment_history'
      t.equal((await place.query(history)).length, 2, 'the history stays')
      await client.read(place.file, 'mine', 'delete with history')
      t.strictSame(await place.query(history), [])
    })

    t.test(`${name}: a store with a history keeps the rows that it deletes`, async (t) => {
      const caller = await callerWithRows(3)
      const place = await open(t)
      await client.copy(accessOf(service, caller), place.file, 'mine', { history: true })
      const ids = 'select id from portfolio_transactions union select id from account_transactions'
      const orders = 'select id from transfer_orders'
      const copied = await place.query(`${ids} union ${orders} order by id`)
      t.equal(copied.length, 7)
      await client.read(place.file, 'mine', 'delete, and keep the rows')
      t.strictSame(await place.query('select * from investment_row'), [])
      const removed = `select distinct id from investment_changes where change = 'removed' order by id`
      t.same(await place.query(removed), copied)
      const amounts = `select before from investment_changes where field = 'amount'
        and list = 'account_transactions' and after is null order by before`
      t.match(
        await place.query(amounts),
        withLengths([{ before: '0.10' }, { before: '1.10' }, { before: '2.10' }]),
      )
      await client.read(place.file, 'mine', 'delete with history')
      t.strictSame(await place.query('select * from investment_history'), [])
    })

    t.test(`${name}: an expired cursor: a second copy replaces the first one`, async (t) => {
      const caller = await callerWithRows(10)
      const place = await open(t)
      const access = { ...accessOf(service, caller), pageSize: 4 }
      await client.copy(access, place.file, 'mine', { history: true })
      await change(caller)
      const faults: Fault[] = ['expired', 'none', 'unavailable']
      const fault = (n: number) => faults[n] ?? 'none'
      const proxy = await startFaultProxy(t, { target: service.url, fault })
      const through = { ...accessOf(proxy, caller), pageSize: 4, attempts: 1 }
      const failed = client.copy(through, place.file, 'mine', { history: true })
      t.match(await failureOf(failed), { code: 'service_unavailable' })
      t.equal((await client.read(place.file, 'mine', 'portfolio')).length, 10, 'the old copy')
      const { result, told } = await client.copy(access, place.file, 'mine', { history: true })
      t.match(result.portfolio, { totalItems: 12, rebuilt: true, inserted: 2, removed: 0 })
      const [first] = told
      t.equal(first?.list, 'portfolio_transactions')
      t.same(first?.previous, {})
      await compare(t, client, caller, place)
    })

    t.test(`${name}: an error in onChanges: its page is not written`, async (t) => {
      const caller = await callerWithRows(3)
      const place = await open(t)
      const access = accessOf(service, caller)
      t.match(await failureOf(client.copy(access, place.file, 'mine', { failAt: 1 })), {
        message: 'an error of the app',
      })
      t.strictSame(await client.read(place.file, 'mine', 'portfolio'), [])
      await client.copy(access, place.file, 'mine')
      await change(caller)
      await failureOf(client.copy(access, place.file, 'mine', { failAt: 2 }))
      t.equal((await client.read(place.file, 'mine', 'portfolio')).length, 5, 'the list before')
      t.equal((await client.read(place.file, 'mine', 'account')).length, 3)
      const { result } = await client.copy(access, place.file, 'mine')
      t.match(result.account, { inserted: 2 })
      await compare(t, client, caller, place)
    })
  }

  t.test(`${database}: two programs at once: right, or a conflict`, async (t) => {
    const caller = await callerWithRows(30)
    const access = { ...accessOf(service, caller), pageSize: 7 }
    for (const [language, { here, start }] of Object.entries(drivers[database])) {
      const programs = [start(t), start(t)]
      const ends = { right: 0, conflict: 0 }
      let place = await open(t)
      for (let round = 0; round < ROUNDS[database]; round += 1) {
        // The first round of three begins without a copy, the others go on.
        if (round > 0 && round % 3 === 0) place = await open(t)
        const calls = programs.map((each) => each.copy(access, place.file, 'mine'))
        const results = await Promise.allSettled(calls)
        for (const [index, { status }] of results.entries()) {
          if (status === 'fulfilled') ends.right += 1
          else {
            const error = await failureOf(calls[index] as Promise<unknown>)
            t.match(error, { name: 'CopyError', code: 'conflict' }, error.message)
            ends.conflict += 1
          }
        }
        t.ok(
          results.some(({ status }) => status === 'fulfilled'),
          `${language}, round ${round}`,
        )
        await compare(t, here, caller, place)
        if (round % 3 === 1) await change(caller)
      }
      t.comment(`${language}: ${ends.right} right, ${ends.conflict} conflicts`)
      t.equal(ends.right + ends.conflict, 2 * ROUNDS[database])
    }
  })

  t.test(
    `${database}: a program that is killed inside onChanges: nothing is written`,
    async (t) => {
      for (const [language, { here: driver, start }] of Object.entries(drivers[database])) {
        const client = start(t)
        const caller = await callerWithRows(3)
        const place = await open(t)
        const access = accessOf(service, caller)
        await driver.copy(access, place.file, 'mine', { history: true })
        const before = sorted(await driver.read(place.file, 'mine', 'portfolio'))
        await change(caller)
        const killed = client.copy(access, place.file, 'mine', { killAt: 1, history: true })
        await t.rejects(killed, /has ended/)
        t.strictSame(sorted(await driver.read(place.file, 'mine', 'portfolio')), before, language)
        t.strictSame(await place.query('select * from investment_history'), [])
        const next = await driver.copy(access, place.file, 'mine', { history: true })
        t.match(next.result, { portfolio: { inserted: 2 }, account: { inserted: 2 } })
        t.equal(next.told.length, 2, 'the app hears of it again')
        await compare(t, driver, caller, place)
      }
    },
  )
}

t.test('PostgreSQL: one cursor for each connection polls each change once', async (t) => {
  const place = await openPlace(t, 'PostgreSQL', copies)
  const users = await Promise.all(
    Array.from({ length: 4 }, async (_, index) => ({
      name: `user ${index}`,
      caller: await callerWithRows(2),
      polled: [] as number[],
    })),
  )
  const [first, ...others] = users as [(typeof users)[number], ...typeof users]
  const [pool, otherPool] = [openPool(t, place.file), openPool(t, place.file)]
  const synchronize = (
    { name, caller }: (typeof users)[number],
    database: pg.Pool,
    onChanges?: () => Promise<void>,
  ) => {
    const api = new InvestmentData({ baseUrl: service.url, token: caller.token })
    const store = new PostgresStore(database, name, { history: true })
    return api.connection(caller.connection.token).syncTransactions(store, { onChanges })
  }
  const poll = async () => {
    const sql = `select distinct number::int from investment_changes
      where connection = $1 and number > $2 order by number`
    for (const { name, polled } of users) {
      const { rows } = await pool.query(sql, [name, polled.at(-1) ?? 0])
      polled.push(...rows.map(({ number }) => number))
    }
  }
  await Promise.all(users.map((user) => synchronize(user, pool)))
  for (let round = 0; round < 3; round += 1) {
    for (const { caller } of users) await change(caller)
    // Its transaction takes the first numbers, and commits last.
    await synchronize(first, pool, async () => {
      await Promise.all(others.map((user) => synchronize(user, otherPool)))
      await poll()
    })
    await poll()
  }
  const { rows } = await pool.query(
    'select connection, number::int from investment_history order by number',
  )
  for (const { name, polled } of users) {
    const own = rows.filter(({ connection }) => connection === name)
    t.same(
      polled,
      own.map(({ number }) => number),
      name,
    )
    t.equal(polled.length, 12)
  }
  // Its first change was visible after those of the others: one cursor for all would have missed it.
  t.ok(Number(first.polled[0]) < Math.min(...others.map(({ polled }) => Number(polled[0]))))
})

for (const [language, { here: client }] of Object.entries(drivers.PostgreSQL)) {
  t.test(`${language}, PostgreSQL: without changes, at most 6 statements`, async (t) => {
    const caller = await callerWithRows(3)
    const place = await openPlace(t, 'PostgreSQL', copies)
    const access = accessOf(service, caller)
    await client.copy(access, place.file, 'mine', { history: true })
    const counted = await countStatements(t, place.file)
    const { told } = await client.copy(access, counted.url, 'mine', { history: true })
    t.same(told, [])
    // The driver also reads the time of the copy.
    t.ok(counted.statements > 1 && counted.statements - 1 <= 6, `${counted.statements - 1}`)
  })

  t.test(`${language}, PostgreSQL: a connection in LATIN1 keeps each character`, async (t) => {
    const caller = await callerWithRows(3)
    const place = await openPlace(t, 'PostgreSQL', copies)
    const latin1 = new URL(place.file)
    latin1.searchParams.set('client_encoding', 'LATIN1')
    const access = accessOf(service, caller)
    for (let step = 0; step < 2; step += 1) {
      await client.copy(access, latin1.href, 'mine', { history: true, app: 'tables' })
      await compare(t, client, caller, { ...place, file: latin1.href })
      await compare(t, client, caller, place)
      await change(caller)
    }
  })

  t.test(`${language}, PostgreSQL: columns are numeric, and sums in SQL are exact`, async (t) => {
    const caller = await callerWithRows(3)
    await change(caller)
    const place = await openPlace(t, 'PostgreSQL', copies)
    await client.copy(accessOf(service, caller), place.file, 'mine')
    const [types] = await place.query(`select pg_typeof(sum(amount))::text as sum,
      pg_typeof(max(operation_date_day))::text as day, sum(amount)::text as total
      from account_transactions where connection = 'mine'`)
    t.match(types, { sum: 'numeric', day: 'date', total: /^-?\d+\.\d{2,}$/ })
    const [order] = await place.query('select titles::text, total from transfer_orders')
    t.same(order, { titles: '0.10', total: true })
  })

  t.test(
    `${language}, PostgreSQL: the views show only rows that their reader may see`,
    async (t) => {
      const schema = newSchema()
      const place = await openSchema(t, copies, schema)
      const reader = `anon_${randomBytes(6).toString('hex')}`
      // A hosted database may give each new table to a role of the public.
      await place.query(`create role ${reader}`)
      t.teardown(async () => {
        await place.query(`drop owned by ${reader}`)
        await place.query(`drop role ${reader}`)
      })
      await place.query(`grant usage on schema ${quoted(schema)} to ${reader}`)
      await place.query(
        `alter default privileges in schema ${quoted(schema)} grant all on tables to ${reader}`,
      )
      const caller = await callerWithRows(3)
      await client.copy(accessOf(service, caller), place.file, 'mine')
      const tables = await place.query(`select oid::regclass::text as name from pg_class
      where relnamespace = quote_ident(current_schema())::regnamespace and relkind = 'r'`)
      for (const { name } of tables)
        await place.query(`alter table ${name} enable row level security`)
      const views = await place.query(`select oid::regclass::text as name from pg_class
      where relnamespace = quote_ident(current_schema())::regnamespace and relkind = 'v'`)
      t.ok(views.length >= 4)
      const [owned] = await place.query('select count(*)::int as rows from portfolio_transactions')
      t.same(owned, { rows: 3 }, 'the owner sees them')
      await place.query(`set role ${reader}`)
      for (const { name } of views)
        t.same(await place.query(`select from ${name}`), [], String(name))
      await place.query('reset role')
    },
  )

  t.test(`${language}, PostgreSQL: a connection that is lost, and a full disk`, async (t) => {
    const caller = await callerWithRows(4)
    const place = await openPlace(t, 'PostgreSQL', copies)
    const access = accessOf(service, caller)
    await client.copy(access, place.file, 'mine', { history: true })
    const before = sorted(byName(await client.read(place.file, 'mine', 'account')))
    await change(caller)
    // The trigger is called inside the transaction of the store.
    const faults = {
      'pg_terminate_backend(pg_backend_pid())': /terminat|closed|connection/i,
      "investment_fault('53100')": /No space left/,
    }
    await place.query(`create function investment_fault(code text) returns void language plpgsql as $$
      begin raise exception 'No space left on device' using errcode = code; end $$`)
    for (const [fault, message] of Object.entries(faults)) {
      await place.query(`create or replace function fail() returns trigger language plpgsql as $$
        begin if new.row ? 'movementId' then perform ${fault}; end if; return new; end $$`)
      await place.query(
        'create or replace trigger fail before insert on investment_row for each row execute function fail()',
      )
      const failed = client.copy(access, place.file, 'mine', { history: true })
      t.match((await failureOf(failed)).message, message)
      const after = sorted(byName(await client.read(place.file, 'mine', 'account')))
      t.strictSame(after, before, fault)
    }
    await place.query('drop trigger fail on investment_row')
    await client.copy(access, place.file, 'mine', { history: true })
    await compare(t, client, caller, place)
  })

  t.test(`${language}, PostgreSQL: an own table of the app is refused, and stays`, async (t) => {
    const caller = await callerWithRows(1)
    const place = await openPlace(t, 'PostgreSQL', copies)
    await place.query(`create view portfolio_transactions as select 'mine' as text`)
    const failed = client.copy(accessOf(service, caller), place.file, 'mine')
    t.match(await failureOf(failed), {
      code: 'name_taken',
      message: /has a portfolio_transactions that no store has made/,
    })
    t.same(await place.query('select * from portfolio_transactions'), [{ text: 'mine' }])
    t.same(await place.query(`select to_regclass('investment_copy') as name`), [{ name: null }])
  })

  t.test(
    `${language}, PostgreSQL: two apps in one database, each with a schema of its own`,
    async (t) => {
      const [shared, own] = [newSchema(), newSchema()]
      const first = { caller: await callerWithRows(2), place: await openSchema(t, copies, shared) }
      // The tables of the first app are on the path of the second one, as those in `public` are.
      const second = {
        caller: await callerWithRows(5),
        place: await openSchema(t, copies, own, shared),
      }
      for (const { caller, place } of [first, second, first, second]) {
        await client.copy(accessOf(service, caller), place.file, 'mine', { history: true })
        await change(caller)
      }
      for (const { caller, place } of [first, second]) {
        const { result } = await client.copy(accessOf(service, caller), place.file, 'mine')
        t.match(result.portfolio, { rebuilt: false, inserted: 2 })
        await compare(t, client, caller, place)
      }
      await client.read(second.place.file, 'mine', 'delete with history')
      await compare(t, client, first.caller, first.place)
      t.equal((await first.place.query('select * from investment_history')).length, 4)
    },
  )

  t.test(
    `${language}, PostgreSQL: views and tables of the app go on after a 410 and a deletion`,
    async (t) => {
      const caller = await callerWithRows(6)
      const place = await openPlace(t, 'PostgreSQL', copies)
      const access = { ...accessOf(service, caller), pageSize: 4 }
      await client.copy(access, place.file, 'mine')
      await place.query(`create view per_type as
        select connection, type, sum(amount)::text as total, count(*)::int as count
        from portfolio_transactions group by connection, type`)
      await place.query('create table note (connection text, id text, text text)')
      await place.query(`insert into note
        select connection, id, 'checked' from portfolio_transactions`)
      const notes = 'select n.text from note n join portfolio_transactions using (connection, id)'
      t.match(await place.query('select * from per_type'), withLengths([{ count: 6 }]))
      await change(caller)
      const fault = (n: number) => (n === 0 ? 'expired' : 'none')
      const proxy = await startFaultProxy(t, { target: service.url, fault })
      const through = { ...accessOf(proxy, caller), pageSize: 4 }
      const { result } = await client.copy(through, place.file, 'mine')
      t.ok(result.portfolio.rebuilt)
      t.match(await place.query('select * from per_type'), withLengths([{ count: 8 }]))
      t.equal((await place.query(notes)).length, 6, 'the identifiers stay')
      await client.read(place.file, 'mine', 'delete')
      t.same(await place.query('select * from per_type'), [])
      await client.copy(access, place.file, 'mine')
      t.match(await place.query('select * from per_type'), withLengths([{ count: 8 }]))
      t.equal((await place.query(notes)).length, 6)
    },
  )
}

const PROGRAMS = { TypeScript: 'postgres-copy.mts', Python: 'postgres_copy.py' }

for (const [language, file] of Object.entries(PROGRAMS)) {
  if (!(language in drivers.PostgreSQL)) continue
  t.test(
    `${language}: the program of docs/clients.md that keeps a copy in PostgreSQL`,
    async (t) => {
      const seeded = await startSeededService(t)
      const place = await openPlace(t, 'PostgreSQL', copies)
      const page = await readFile(join(ROOT, 'docs/clients.md'), 'utf8')
      const [, source = ''] =
        new RegExp(`^\`\`\`\\w+\n((?://|#) ${file}\n.*?)^\`\`\``, 'ms').exec(page) ?? []
      const folder = t.testdir({
        [file]: source
          .replace('http://127.0.0.1:3000', seeded.url)
          .replace(
            "'@investment-data/client'",
            `'${join(ROOT, 'clients/typescript/src/index.ts')}'`,
          )
          .replace("'pg'", `'${import.meta.resolve('pg')}'`),
      })
      const program = language === 'Python' ? PYTHON : process.execPath
      const env = { ...pythonEnvironment, DATABASE_URL: place.file, NODE_NO_WARNINGS: '1' }
      const printed = await run(program, [join(folder, file)], { env })
      t.match(printed, /^30\.13 EUR\n(Hispania Renovables 200\n|null \S+\n|None \S+\n)+$/)
      const news = await place.query('select text from news order by text')
      t.equal(news.length, 3)
      t.match(news[0], { text: 'account_transactions: 6' })
    },
  )
}
