import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { failureOf, type Row, startStoreDrivers } from '../support/clients/drivers.ts'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { readCopy, sorted } from '../support/clients/sqlite-copies.ts'
import { addCaller, addToken, type Caller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { expireCursors } from '../support/state.ts'
import { withLengths } from '../support/with-lengths.ts'

/**
 * What may go wrong while a client keeps a copy in SQLite. After each case, the copy equals the lists. stores.test.ts has
 * the cases that are the same for PostgreSQL.
 */
const service = await startService(t)
const { db } = service
const drivers = startStoreDrivers(t, 'SQLite')

const newFile = (t: Test) => join(t.testdir({}), 'copy.db')

async function callerWithRows(count: number): Promise<Caller> {
  const caller = await addCaller(db)
  for (const list of listNames)
    await lists[list].add(db, caller.connection, ...Array.from({ length: count }, () => ({})))
  return caller
}

/** Adds a row to each list, and changes another one. */
async function change(caller: Caller): Promise<void> {
  for (const list of listNames) {
    const [first = ''] = await lists[list].add(db, caller.connection, { amount: '5.0' }, {})
    const table = `${list}_transaction` as const
    const { idColumn } = lists[list]
    await db
      .updateTable(table)
      .set({ amount: '-5.00' })
      .where(idColumn as never, '=', first as never)
      .execute()
  }
}

async function compare(t: Test, caller: Caller, file: string, name = 'mine'): Promise<void> {
  for (const list of listNames)
    t.strictSame(
      sorted(readCopy(file, name, list)),
      sorted(await readList(service, caller, list)),
      `${list}: the copy equals the list`,
    )
}

/** Sets the cursors of a copy. */
function setCursors(file: string, cursor: string): void {
  const sqlite = new DatabaseSync(file)
  sqlite.prepare('update investment_copy set cursor = ?').run(cursor)
  sqlite.close()
}

for (const [language, { here: client }] of Object.entries(drivers)) {
  t.test(`${language}: cursors that expire, or that an older service rejects`, async (t) => {
    const caller = await callerWithRows(3)
    const file = newFile(t)
    const access = accessOf(service, caller)
    const cases: [string, () => unknown][] = [
      ['410', () => expireCursors(db)],
      ['invalid_cursor', () => setCursors(file, 'of-a-newer-release')],
    ]
    await client.copy(access, file, 'mine')
    for (const [name, spoil] of cases) {
      await change(caller)
      await spoil()
      const { result } = await client.copy(access, file, 'mine')
      const totalItems = name === '410' ? 5 : 7
      const counts = { totalItems, rebuilt: true, inserted: 2, updated: 0, removed: 0 }
      t.match(result, { portfolio: counts, account: counts }, name)
      await compare(t, caller, file)
    }
    const { result } = await client.sync(access, 'account', 'of-a-newer-release')
    t.strictSame(result, { status: 'cursor_expired' }, 'a copy of your own')
  })

  t.test(`${language}: a connection that was removed: 404, and the copy can go`, async (t) => {
    const caller = await callerWithRows(3)
    const file = newFile(t)
    const access = accessOf(service, caller)
    await client.copy(access, file, 'mine')
    const before = await readList(service, caller, 'account')
    for (const list of listNames)
      await db
        .deleteFrom(`${list}_transaction`)
        .where('connection_id', '=', caller.connection.id)
        .execute()
    await db.deleteFrom('connection').where('id', '=', caller.connection.id).execute()
    const error = { name: 'ProblemError', code: 'connection_not_found', status: 404 }
    t.match(await failureOf(client.copy(access, file, 'mine')), error)
    t.strictSame(sorted(await client.read(file, 'mine', 'account')), sorted(before), 'still there')
    await client.read(file, 'mine', 'delete')
    t.strictSame(await client.read(file, 'mine', 'account'), [])
  })

  t.test(`${language}: a token that expires between two pages, and a new one`, async (t) => {
    const caller = await callerWithRows(6)
    const file = newFile(t)
    const token = await addToken(db, caller.appId)
    let requests = 0
    const before = async () => {
      requests += 1
      if (requests !== 2) return
      const expires_at = new Date(Date.now() - 1000)
      await db
        .updateTable('app_token')
        .set({ expires_at })
        .where('app_id', '=', caller.appId)
        .execute()
    }
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none', before })
    const access = { ...accessOf(proxy, caller), token, pageSize: 4 }
    t.match(await failureOf(client.copy(access, file, 'mine')), {
      name: 'AuthenticationError',
      code: 'expired_token',
      status: 401,
    })
    const fresh = { ...caller, token: await addToken(db, caller.appId) }
    const { result } = await client.copy(accessOf(service, fresh), file, 'mine')
    t.match(result, { portfolio: { rebuilt: true, inserted: 6 }, account: { inserted: 6 } })
    await compare(t, fresh, file)
  })

  t.test(`${language}: bodies that are cut: the same copy`, async (t) => {
    const caller = await callerWithRows(9)
    const file = newFile(t)
    const fault = (n: number): Fault => (n % 2 === 0 ? 'cut' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault })
    const access = { ...accessOf(proxy, caller), pageSize: 4 }
    for (const inserted of [9, 2]) {
      const { result, told } = await client.copy(access, file, 'mine')
      t.match(result, { portfolio: { inserted }, account: { inserted } })
      t.equal(told.flatMap(({ upserts }) => upserts).length, 2 * inserted, 'each row once')
      await compare(t, caller, file)
      await change(caller)
    }
    t.ok(Number(proxy.counts.cut) >= 8, `${proxy.counts.cut} bodies are cut`)
  })

  t.test(`${language}: a full disk: the copy as before, and then the rest`, async (t) => {
    const caller = await callerWithRows(3)
    const file = newFile(t)
    const access = { ...accessOf(service, caller), pageSize: 20 }
    await client.copy(access, file, 'mine', { history: true })
    const before = sorted(readCopy(file, 'mine', 'portfolio'))
    const description = 'x'.repeat(2000)
    const rows = Array.from({ length: 60 }, () => ({ description }))
    await lists.portfolio.add(db, caller.connection, ...rows)
    const sqlite = new DatabaseSync(file)
    const { page_count } = sqlite.prepare('pragma page_count').get() as { page_count: number }
    sqlite.close()
    // At first no page of the list fits, then one of them, and so on.
    const sizes = new Set<number>()
    for (let pages = page_count + 1; ; pages += 30) {
      const full = client.copy(access, file, 'mine', { pages, history: true })
      const ended = await full.then(
        () => undefined,
        () => failureOf(full),
      )
      if (ended === undefined) break
      t.match(ended.message, /database or disk is full/)
      const copied = sorted(readCopy(file, 'mine', 'portfolio'))
      sizes.add(copied.length)
      t.ok(before.every((row) => copied.includes(row)))
    }
    for (const size of sizes) t.ok([3, 23, 43, 63].includes(size), `${size} rows`)
    t.ok(sizes.has(3) && sizes.size > 1, `${sizes.size} sizes`)
    const last = await client.copy(access, file, 'mine', { history: true })
    t.match(last.result, { portfolio: { totalItems: 63, inserted: 0, rebuilt: false } })
    await compare(t, caller, file)
  })

  t.test(`${language}: a row that leaves and comes back`, async (t) => {
    const caller = await callerWithRows(2)
    const file = newFile(t)
    const access = accessOf(service, caller)
    const [id = ''] = await lists.portfolio.add(db, caller.connection, { amount: '1.0' })
    const leave = () =>
      db.deleteFrom('portfolio_transaction').where('transaction_id', '=', id).execute()
    const back = (amount: string) =>
      lists.portfolio.add(db, caller.connection, { transaction_id: id, amount })
    await client.copy(access, file, 'mine')
    const [portfolio] = await readList(service, caller, 'portfolio')
    const steps: [() => Promise<unknown>, object][] = [
      [leave, { inserted: 0, updated: 0, removed: 1 }],
      [() => back('1.00'), { inserted: 1, updated: 0, removed: 0 }],
      [() => leave().then(() => back('2')), { inserted: 0, updated: 1, removed: 0 }],
      [
        () =>
          leave()
            .then(() => back('3'))
            .then(leave),
        { inserted: 0, updated: 0, removed: 1 },
      ],
    ]
    t.ok(portfolio)
    for (const [step, counts] of steps) {
      await step()
      t.match((await client.copy(access, file, 'mine')).result.portfolio, counts)
      await compare(t, caller, file)
    }
  })

  t.test(
    `${language}: a feed that corrects a row twice, in one page and between two`,
    async (t) => {
      const caller = await callerWithRows(1)
      const file = newFile(t)
      const [row = {}] = await readList(service, caller, 'portfolio')
      const id = String(row.transactionId)
      const of = (amount: string) => ({ ...row, amount })
      const feed = await startFeed(t, caller, [
        { items: [of('1'), of('2.0')], removed: [] },
        {
          items: [of('3'), of('4.00'), of('5')],
          removed: ['00000000-0000-4000-8000-000000000000'],
        },
        { items: [of('6')], removed: [id, id] },
      ])
      const access = { ...accessOf(service, caller), url: feed.url }
      const results: unknown[] = []
      for (let step = 0; step < 3; step += 1) {
        feed.total = step === 2 ? 0 : 1
        const { result, told } = await client.copy(access, file, 'mine')
        const { inserted, updated, removed } = result.portfolio
        const change = told.find(({ list }) => list === 'portfolio_transactions')
        const amounts = change?.upserts.map(({ amount }) => amount)
        const before = Object.values(change?.previous ?? {}).map(({ amount }) => amount)
        results.push([[inserted, updated, removed], amounts, before, change?.removed])
      }
      t.strictSame(results, [
        [[1, 0, 0], ['2.0'], [], []],
        [[0, 1, 0], ['5'], ['2.0'], []],
        [[0, 0, 1], [], ['5'], [id]],
      ])
      // Twice between two synchronizations, at the service itself.
      const own = newFile(t)
      const direct = accessOf(service, caller)
      await client.copy(direct, own, 'mine')
      for (const amount of ['7', '8.10'])
        await db
          .updateTable('portfolio_transaction')
          .set({ amount })
          .where('transaction_id', '=', id)
          .execute()
      const { result, told } = await client.copy(direct, own, 'mine')
      t.match(result.portfolio, { inserted: 0, updated: 1, removed: 0 })
      t.match(told, withLengths([{ upserts: [{ amount: '8.10' }], previous: { [id]: row } }]))
    },
  )

  t.test(`${language}: a copy of release 1.1.0 goes on`, async (t) => {
    const caller = await callerWithRows(5)
    const file = newFile(t)
    const access = accessOf(service, caller)
    await makeOldCopy(file, caller)
    await change(caller)
    const { result } = await client.copy(access, file, 'mine', { history: true })
    const counts = { totalItems: 7, rebuilt: false, inserted: 2, updated: 0, removed: 0 }
    t.match(result, { portfolio: counts, account: counts })
    await compare(t, caller, file)
    for (const list of listNames)
      t.strictSame(await client.read(file, 'mine', list), await readList(service, caller, list))
    // A program of release 1.1.0 writes the newer file, too.
    writeAsOldRelease(file)
    const again = await client.copy(access, file, 'mine')
    t.match(again.result, { portfolio: { rebuilt: true }, account: { rebuilt: false } })
    await compare(t, caller, file)
  })

  t.test(`${language}: a conflict that is no raw error: the file is locked`, async (t) => {
    const caller = await callerWithRows(1)
    const file = newFile(t)
    await client.copy(accessOf(service, caller), file, 'mine')
    await change(caller)
    const sqlite = new DatabaseSync(file)
    sqlite.exec('begin immediate')
    t.match(await failureOf(client.copy(accessOf(service, caller), file, 'mine')), {
      name: 'CopyError',
      code: 'conflict',
      message: 'Another process locks the database: synchronize again',
    })
    sqlite.exec('commit')
    sqlite.close()
    await client.copy(accessOf(service, caller), file, 'mine')
    await compare(t, caller, file)
  })
}

for (const [language, { here: client }] of Object.entries(drivers))
  t.test(`${language}: a clock that steps back: the order of the history stays`, async (t) => {
    const caller = await callerWithRows(2)
    const file = newFile(t)
    const access = accessOf(service, caller)
    await client.copy(access, file, 'mine', { history: true })
    for (const [amount, now] of [
      ['1', '2026-11-24T12:00:00+00:00'],
      ['2', '2026-11-24T11:00:00+00:00'],
      ['3', '1999-01-01T00:00:00+00:00'],
    ] as const) {
      await db
        .updateTable('account_transaction')
        .set({ amount })
        .where('connection_id', '=', caller.connection.id)
        .execute()
      const { result } = await client.copy(access, file, 'mine', { history: true, now })
      t.match(result.account, { updated: amount === '1' ? 0 : 2 })
    }
    const sqlite = new DatabaseSync(file)
    const seen = sqlite
      .prepare(
        `select after, seen_at from investment_changes where field = 'amount' order by number`,
      )
      .all()
    sqlite.close()
    t.same(
      seen.map((each) => `${each.after} ${each.seen_at}`),
      [
        ...Array(2).fill('2 2026-11-24T11:00:00.000Z'),
        ...Array(2).fill('3 1999-01-01T00:00:00.000Z'),
      ],
    )
    await compare(t, caller, file)
  })

/** Serves pages of changes, one after the other, for the portfolio list. The other lists are empty. */
async function startFeed(t: Test, caller: Caller, pages: { items: Row[]; removed: string[] }[]) {
  const feed = { url: '', total: 1 }
  let step = 0
  const server = createServer(({ url = '' }, response) => {
    const isPortfolio = url.startsWith(caller.connection.portfolio)
    const page = (isPortfolio && pages[step]) || { items: [], removed: [] }
    if (isPortfolio) step += 1
    const totalItems = isPortfolio ? feed.total : 0
    const body = {
      ...page,
      limit: 1000,
      page: 0,
      totalItems,
      nextCursor: `c${step}`,
      hasMore: false,
    }
    response.setHeader('content-type', 'application/json;IEEE754Compatible=true')
    response.setHeader('data-version', `${step}.1`)
    response.end(JSON.stringify(url.includes('assets-transfer') ? [] : body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  feed.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return feed
}

/** Tables and views of release 1.1.0. */
const OLD_SCHEMA = `
  create table if not exists investment_copy (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  );
  create table if not exists investment_row (
    copy_id integer not null references investment_copy (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid;
  create view if not exists portfolio_transactions as
    select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
    where list = 'portfolio_transactions' and copy = 'current';
  create view if not exists account_transactions as
    select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
    where list = 'account_transactions' and copy = 'current';
`

/** Makes a complete copy as release 1.1.0 does. */
async function makeOldCopy(file: string, caller: Caller): Promise<void> {
  const sqlite = new DatabaseSync(file)
  sqlite.exec(OLD_SCHEMA)
  for (const list of listNames) {
    const { text } = await service.get(`${caller.connection[list]}?since=start`, {
      token: caller.token,
    })
    const { nextCursor } = JSON.parse(text)
    const { lastInsertRowid } = sqlite
      .prepare('insert into investment_copy (connection, list, copy, cursor) values (?, ?, ?, ?)')
      .run('mine', `${list}_transactions`, 'current', nextCursor)
    const write = sqlite.prepare('insert or replace into investment_row values (?, ?, ?)')
    for (const row of await readList(service, caller, list))
      write.run(lastInsertRowid, String(row[lists[list].id]), JSON.stringify(row))
  }
  sqlite.close()
}

/** The statements of release 1.1.0 for a copy that starts again, on a newer file. */
function writeAsOldRelease(file: string): void {
  const sqlite = new DatabaseSync(file)
  sqlite.exec(OLD_SCHEMA)
  const save = sqlite.prepare(
    'insert into investment_copy (connection, list, copy, cursor) values (?, ?, ?, ?) ' +
      'on conflict (connection, list, copy) do update set cursor = excluded.cursor',
  )
  save.run('mine', 'portfolio_transactions', 'next', 'c1')
  const { id } = sqlite.prepare(`select id from investment_copy where copy = 'next'`).get() as {
    id: number
  }
  sqlite.prepare('insert or replace into investment_row values (?, ?, ?)').run(id, 'a', '{}')
  sqlite.close()
}
