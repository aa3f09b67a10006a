import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import {
  InvestmentData,
  positions,
  type SqliteDatabase,
  SqliteStore,
} from '../../clients/typescript/src/index.ts'
import { openBetterSqlite, startDrivers } from '../support/clients/drivers.ts'
import { startFaultProxy } from '../support/clients/fault-proxy.ts'
import { addCaller, addTransferOrders, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

/** The database of an app: its own tables, its options and its transactions. The Python client has the same tests. */
const service = await startService(t)
const caller = await addCaller(service.db)
const rows = Array.from({ length: 5 }, () => ({ titles: '2', investment: null }))
await lists.portfolio.add(service.db, caller.connection, ...rows)
await lists.account.add(service.db, caller.connection, {}, {})
await addTransferOrders(service.db, caller.connection, {})

const api = new InvestmentData({ baseUrl: service.url, token: caller.token, pageSize: 3 })
const connection = api.connection(caller.connection.token)

const OWN_OBJECTS = [
  `create view portfolio_transactions as select 'mine' as text`,
  `create view portfolio_transactions as select connection, r.id, row from mine c join investment_row r
    on copy_id = c.id where list = 'portfolio_transactions' and copy = 'current'`,
  `create table account_transactions (id integer primary key, text)`,
  `create temporary table transfer_orders (text)`,
  `create table Investment_Copy (id integer primary key, text)`,
  `create table investment_row (copy_id, id, row, text)`,
  `create view investment_changes as select 'mine' as text`,
]

for (const statement of OWN_OBJECTS)
  t.test(`an app has its own: ${statement.slice(0, 50)}: refused, and left as it is`, async (t) => {
    const db = new DatabaseSync(':memory:')
    db.exec(statement)
    const objects = () => {
      const all = 'select * from sqlite_master union all select * from sqlite_temp_master'
      return JSON.stringify(db.prepare(all).all())
    }
    const before = objects()
    const expected = {
      code: 'name_taken',
      message: /^The database has a \w+ that no store has made\. .*prefix: 'copy_'/,
    }
    t.throws(() => new SqliteStore(db, 'mine'), expected)
    t.equal(objects(), before)
    const store = new SqliteStore(db, 'mine', { prefix: 'bank_', history: true })
    await connection.syncTransactions(store)
    t.equal([...store.portfolioTransactions()].length, 5)
    const sql = `select count(*) as count from bank_portfolio_transactions where type = 'BUY'`
    t.equal(db.prepare(sql).get()?.count, 5)
    store.delete({ history: true })
    t.equal(db.prepare(sql).get()?.count, 0)
    db.close()
  })

t.test('prefix: it must be a part of a name', async (t) => {
  const db = new DatabaseSync(':memory:')
  for (const prefix of ['1', 'A', 'a b', 'a;', 'x'.repeat(31), '_', 5 as unknown as string])
    t.throws(() => new SqliteStore(db, 'mine', { prefix }), TypeError)
  t.strictSame(db.prepare('select * from sqlite_master').all(), [])
})

t.test('a copy of 1.1.0 beside an own table with a name of 1.2.0: refused', async (t) => {
  const db = new DatabaseSync(':memory:')
  db.exec(`create table investment_copy (id integer primary key, connection text not null,
      list text not null, copy text not null, cursor text not null, unique (connection, list, copy));
    create table investment_row (copy_id integer not null references investment_copy (id),
      id text not null, row text not null, primary key (copy_id, id)) without rowid;
    create view portfolio_transactions as
      select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
      where list = 'portfolio_transactions' and copy = 'current';
    create table transfer_orders (mine text)`)
  const expected = { code: 'name_taken', message: /has a transfer_orders that/ }
  t.throws(() => new SqliteStore(db, 'mine'), expected)
  db.exec('alter table transfer_orders rename to my_orders')
  const store = new SqliteStore(db, 'mine')
  t.equal((await connection.syncTransactions(store)).orders.inserted, 1)
})

/** A database that refuses numbered parameters, as better-sqlite3 does. */
function withoutNumberedParameters(db: DatabaseSync): SqliteDatabase {
  const prepare: SqliteDatabase['prepare'] = (sql) => {
    if (/\?\d/.test(sql)) throw new RangeError('a numbered parameter')
    return db.prepare(sql)
  }
  return { exec: (sql) => db.exec(sql), prepare }
}

const DATABASES: Record<string, () => SqliteDatabase> = {
  readBigInts: () => new DatabaseSync(':memory:', { readBigInts: true }),
  returnArrays: () => new DatabaseSync(':memory:', { returnArrays: true }),
  'both of them': () => new DatabaseSync(':memory:', { readBigInts: true, returnArrays: true }),
  'no bare named parameters': () =>
    new DatabaseSync(':memory:', { allowBareNamedParameters: false }),
  'no foreign keys, double quotes are texts': () => {
    const options = { enableForeignKeyConstraints: false, enableDoubleQuotedStringLiterals: true }
    return new DatabaseSync(':memory:', options)
  },
  'no numbered parameters': () => withoutNumberedParameters(new DatabaseSync(':memory:')),
  ...betterSqlite(),
}

/** The library itself is a package of `test/clients`. */
function betterSqlite(): Record<string, () => SqliteDatabase> {
  if (process.env.CLIENTS !== 'all') return {}
  const open = openBetterSqlite()
  const withBigInts = () => open(':memory:').defaultSafeIntegers(true)
  return { 'better-sqlite3': () => open(':memory:'), 'better-sqlite3, safe integers': withBigInts }
}

for (const [name, open] of Object.entries(DATABASES))
  t.test(`options of the database: ${name}`, async (t) => {
    const db = open()
    const store = new SqliteStore(db, 'mine', { history: true })
    const changes: number[] = []
    const first = await connection.syncTransactions(store, {
      onChanges: ({ upserts }) => {
        changes.push(upserts.length)
      },
    })
    t.match(first, {
      portfolio: { inserted: 5 },
      account: { inserted: 2 },
      orders: { inserted: 1 },
    })
    t.same(changes.length, 3)
    const again = await new SqliteStore(db, 'mine').state('portfolio_transactions')
    t.equal(again?.totalItems, 5)
    const second = await connection.syncTransactions(store)
    const same = { rebuilt: false, inserted: 0, updated: 0, removed: 0 }
    t.match(second, { portfolio: { totalItems: 5, ...same }, orders: { totalItems: 1, ...same } })
    t.equal([...store.accountTransactions({ from: '2025-01-01', to: '2025-01-01' })].length, 2)
    t.equal(positions(store).length, 5)
    store.discard('portfolio_transactions')
    store.delete()
    t.equal(store.count('portfolio_transactions', 'current'), 0)
  })

t.test('a synchronization without changes: at most 6 statements', async (t) => {
  const db = new DatabaseSync(':memory:')
  const statements: string[] = []
  const counting: SqliteDatabase = {
    exec: (sql) => {
      statements.push(sql)
      return db.exec(sql)
    },
    prepare: (sql) => {
      statements.push(sql)
      return db.prepare(sql)
    },
  }
  const store = new SqliteStore(counting, 'mine', { history: true })
  await connection.syncTransactions(store)
  statements.length = 0
  const { portfolio } = await connection.syncTransactions(store)
  t.equal(portfolio.totalItems, 5)
  t.ok(statements.length > 1 && statements.length <= 6, statements.join('\n'))
})

t.test('an open transaction of the app: one sentence, and the transaction stays', async (t) => {
  const db = new DatabaseSync(':memory:')
  const store = new SqliteStore(db, 'mine')
  db.exec('create table own (text)')
  db.exec(`begin; insert into own values ('mine')`)
  await t.rejects(connection.syncTransactions(store), {
    code: 'transaction_open',
    message: 'The database has an open transaction: end it before the store writes',
  })
  t.throws(() => new SqliteStore(db, 'mine', { prefix: 'a_' }), { code: 'transaction_open' })
  db.exec('commit')
  t.equal(db.prepare('select text from own').get()?.text, 'mine')
  t.equal((await connection.syncTransactions(store)).portfolio.totalItems, 5)
})

t.test('onChanges of a SqliteStore that is asynchronous: refused', async (t) => {
  const store = new SqliteStore(new DatabaseSync(':memory:'), 'mine')
  const onChanges = async () => {
    throw new Error('too late')
  }
  await t.rejects(connection.syncTransactions(store, { onChanges }), /must not be asynchronous/)
  t.equal(store.count('portfolio_transactions', 'current'), 0)
})

t.test('tokens: white space and a whole header are refused with a sentence', async (t) => {
  for (const token of ['Xq4t\n', ' Xq4t', 'Xq4t\r\n', 'a\tb', 'a\u2028b', '\u00a0a', '\ufeffa'])
    t.throws(() => api.connection(token), {
      name: 'TypeError',
      message: /begins or ends with white space, or has a line break$/,
    })
  const create = (token: string) => new InvestmentData({ baseUrl: service.url, token })
  for (const token of ['Bearer idq_a', 'bearer idq_a', 'Bearer'])
    t.throws(() => create(token), /^token must be the token alone: the client adds "Bearer"$/)
  for (const token of ['idq_a\n', ' idq_a', 'idq a']) t.throws(() => create(token), TypeError)
})

t.test('calls at the same time for one copy share a synchronization, or wait', async (t) => {
  const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
  const own = new InvestmentData({ baseUrl: proxy.url, token: caller.token })
  const slow = own.connection(caller.connection.token)
  const db = new DatabaseSync(':memory:')
  const [store, equal] = [new SqliteStore(db, 'mine'), new SqliteStore(db, 'mine')]
  const results = await Promise.all([
    slow.syncTransactions(store),
    slow.syncTransactions(equal),
    own.connection(caller.connection.token).syncTransactions(store),
  ])
  t.strictSame(results[1], results[0])
  t.strictSame(results[2], results[0])
  t.same(proxy.counts, { none: 3 }, 'one request for each list')

  // Other calls wait, so that none of them is a conflict: each change is told once.
  await lists.account.add(service.db, caller.connection, {})
  const told: string[] = []
  const controller = new AbortController()
  const calls = await Promise.all([
    slow.syncTransactions(store, { onChanges: ({ list }) => void told.push(`first ${list}`) }),
    slow.syncTransactions(store, { onChanges: ({ list }) => void told.push(`second ${list}`) }),
    slow.syncTransactions(store, { signal: controller.signal }),
  ])
  t.same(
    calls.map(({ account }) => account.inserted),
    [1, 0, 0],
  )
  t.same(told, ['first account_transactions'])

  // A call that fails does not end the one that waits for it.
  const failing = () => {
    throw new Error('an error of the app')
  }
  await lists.account.add(service.db, caller.connection, {})
  const [failed, next] = await Promise.allSettled([
    slow.syncTransactions(store, { onChanges: failing }),
    slow.syncTransactions(store),
  ])
  t.match(failed, { status: 'rejected', reason: { message: 'an error of the app' } })
  t.match(next, { status: 'fulfilled', value: { account: { inserted: 1 } } })
  db.close()
})

t.test(
  'a copy of 1.2.0 continues, and the SQL of an app on its views gives the same',
  async (t) => {
    const file = join(t.testdir({}), 'copy.db')
    const schema = join(import.meta.dirname, '../support/clients/copy-1.2.0.sql')
    const db = new DatabaseSync(file)
    db.exec(await readFile(schema, 'utf8'))
    const row = {
      transactionId: 'a',
      portfolioId: 'p',
      type: 'BUY',
      amount: '1.10',
      operationDateDay: '2025-01-01',
      retentionDetail: { retentionFrom: '2.0', retentionTo: '3' },
    }
    db.prepare(
      `insert into investment_copy values (1, 'mine', 'portfolio_transactions', 'current', 'c', 'v', 1, null)`,
    ).run()
    db.prepare(`insert into investment_row values (1, 'a', ?)`).run(JSON.stringify(row))
    db.prepare(
      `insert into investment_history values (1, 'mine', 'portfolio_transactions', 'a', ?, ?, 's', 'c')`,
    ).run(JSON.stringify({ ...row, amount: '1' }), JSON.stringify(row))
    const sqlOfApp = [
      `select transactionId, amount, typeof(amount), retentionFrom from portfolio_transactions`,
      `select change, field, before, after from investment_changes order by number`,
      'select * from portfolio_transactions',
      'select * from sqlite_master',
    ]
    const results = () => JSON.stringify(sqlOfApp.map((sql) => db.prepare(sql).all()))
    const before = results()
    for (const [language, client] of Object.entries(startDrivers(t)))
      t.match(
        await client.read(file, 'mine', 'portfolio'),
        withLengths([{ amount: '1.10' }]),
        language,
      )
    const store = new SqliteStore(db, 'mine', { history: true })
    t.equal(store.cursor('portfolio_transactions', 'current'), 'c')
    t.equal(results(), before)
    const upserts = [{ id: 'a', row: { ...row, amount: '2' } }]
    const page = { since: 'c', cursor: 'd', upserts, removed: [], state: null }
    store.apply({ list: 'portfolio_transactions', copy: 'current', ...page })
    const [found] = db.prepare('select amount from portfolio_transactions').all()
    t.match(found, { amount: '2' })
    t.equal(db.prepare('select * from investment_history').all().length, 2)
    db.close()
  },
)
