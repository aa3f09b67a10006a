import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { startDrivers } from '../support/clients/drivers.ts'
import { startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { readCopy, sorted } from '../support/clients/sqlite-copies.ts'
import { addCaller, addTransferOrders, type Caller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

/** What a synchronization tells the app, and what the app reads in its copy. */
const service = await startService(t)
const { db } = service
const drivers = startDrivers(t)
const clients = Object.entries(drivers)
const [writer] = clients.map(([, driver]) => driver)
if (writer === undefined) throw new Error('no client')

const newFile = (t: Test) => join(t.testdir({}), 'copy.db')

async function callerWithRows(count: number): Promise<{ caller: Caller; ids: string[] }> {
  const caller = await addCaller(db)
  const rows = Array.from({ length: count }, (_, index) => ({ amount: `${index}.50` }))
  const ids = await lists.portfolio.add(db, caller.connection, ...rows)
  await lists.account.add(db, caller.connection, ...rows)
  return { caller, ids }
}

const setAmount = (id: string, amount: string) =>
  db.updateTable('portfolio_transaction').set({ amount }).where('transaction_id', '=', id).execute()

const remove = (id: string) =>
  db.deleteFrom('portfolio_transaction').where('transaction_id', '=', id).execute()

/** Rows of a query on the file of a copy. */
function query(file: string, sql: string, ...values: string[]): Record<string, unknown>[] {
  const sqlite = new DatabaseSync(file)
  const rows = sqlite.prepare(sql).all(...values)
  sqlite.close()
  return rows.map((row) => ({ ...row }))
}

for (const [language, client] of clients) {
  t.test(`${language}: what has changed, with the rows as they were`, async (t) => {
    const { caller, ids } = await callerWithRows(4)
    const [first = '', second = '', third = ''] = ids
    const file = newFile(t)
    const access = accessOf(service, caller)
    const begin = await client.copy(access, file, 'mine')
    t.match(begin.result.portfolio, { inserted: 4, updated: 0, removed: 0, rebuilt: true })
    t.strictSame(
      begin.told.map(({ list, upserts, removed, previous }) => {
        return [list, upserts.length, removed.length, Object.keys(previous).length]
      }),
      [
        ['portfolio_transactions', 4, 0, 0],
        ['account_transactions', 4, 0, 0],
      ],
    )
    const before = await readList(service, caller, 'portfolio')
    const rowOf = (id: string) => before.find(({ transactionId }) => transactionId === id)

    await setAmount(first, '-0.100')
    await remove(second)
    const [added = ''] = await lists.portfolio.add(db, caller.connection, { amount: '7' })
    // A row that is written without a change, and one that did not last.
    await setAmount(third, '2.50')
    const [brief = ''] = await lists.portfolio.add(db, caller.connection, {})
    await remove(brief)

    const { result, told } = await client.copy(access, file, 'mine')
    const counts = { inserted: 1, updated: 1, removed: 1 }
    t.match(result.portfolio, { totalItems: 4, rebuilt: false, ...counts })
    t.match(result.account, { totalItems: 4, rebuilt: false, inserted: 0, updated: 0, removed: 0 })
    t.equal(told.length, 1)
    t.strictSame(told[0]?.removed, [second])
    t.strictSame(told[0]?.previous, { [first]: rowOf(first), [second]: rowOf(second) })
    const amounts = told[0]?.upserts.map(({ transactionId, amount }) => [transactionId, amount])
    t.strictSame(
      amounts?.sort(),
      [
        [added, '7'],
        [first, '-0.100'],
      ].sort(),
    )
    t.strictSame((await client.copy(access, file, 'mine')).told, [], 'nothing new')
  })

  t.test(`${language}: a copy that replaces another one: only what differs`, async (t) => {
    const { caller, ids } = await callerWithRows(5)
    const [first = '', second = ''] = ids
    const file = newFile(t)
    await client.copy(accessOf(service, caller), file, 'mine')
    await setAmount(first, '9')
    await remove(second)
    const fault = (n: number) => (n === 0 ? 'expired' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault })
    const { result, told } = await client.copy(accessOf(proxy, caller), file, 'mine')
    t.match(result.portfolio, { rebuilt: true, inserted: 0, updated: 1, removed: 1 })
    t.strictSame(
      told.map(({ upserts, removed, previous }) => {
        return [upserts.length, removed, Object.keys(previous)]
      }),
      [
        [1, [], [first]],
        [0, [second], [second]],
      ],
    )
  })

  t.test(`${language}: nothing new in any list: one request`, async (t) => {
    const { caller } = await callerWithRows(2)
    await addTransferOrders(db, caller.connection, {})
    const file = newFile(t)
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
    const access = accessOf(proxy, caller)
    await client.copy(access, file, 'mine')
    t.same(proxy.counts, { none: 3 })
    const counts = { rebuilt: false, inserted: 0, updated: 0, removed: 0 }
    for (let time = 4; time <= 6; time += 1) {
      const { result } = await client.copy(access, file, 'mine')
      t.match(result.account, { totalItems: 2, ...counts })
      t.match(result.orders, { totalItems: 1, ...counts })
      t.same(proxy.counts, { none: time })
    }
    await lists.account.add(db, caller.connection, {})
    t.match((await client.copy(access, file, 'mine')).result.account, { inserted: 1 })
    t.same(proxy.counts, { none: 9 }, 'all lists')
    // A copy of another size is noticed, though the version is the same.
    const sqlite = new DatabaseSync(file)
    sqlite.exec(
      `delete from investment_row where id = (select id from account_transactions limit 1)`,
    )
    sqlite.close()
    t.match((await client.copy(access, file, 'mine')).result.account, { rebuilt: true })
    t.equal(readCopy(file, 'mine', 'account').length, 3)
  })

  t.test(`${language}: another connection with the same name: all lists are new`, async (t) => {
    const [one, two] = [await callerWithRows(3), await callerWithRows(3)]
    const file = newFile(t)
    await client.copy(accessOf(service, one.caller), file, 'mine')
    // Both connections have one version, as after a common import.
    await sql`update connection set (data_version, changed_at) =
      (select data_version, changed_at from connection where id = ${one.caller.connection.id})
      where id = ${two.caller.connection.id}`.execute(db)
    const { result } = await client.copy(accessOf(service, two.caller), file, 'mine')
    t.match(result, { portfolio: { rebuilt: true }, account: { rebuilt: true } })
    for (const list of listNames)
      t.strictSame(await client.read(file, 'mine', list), await readList(service, two.caller, list))
  })

  t.test(`${language}: transfer orders are in the copy`, async (t) => {
    const { caller } = await callerWithRows(1)
    const company = { name: 'Banco Demo', cif: 'A1' }
    const marketer = { marketer_name: company.name, marketer_cif: company.cif }
    const [first = '', second = '', third = ''] = await addTransferOrders(
      db,
      caller.connection,
      { titles: '0.10', total: true, ...marketer },
      {},
      { completed_at: null },
    )
    const file = newFile(t)
    const access = accessOf(service, caller)
    t.match((await client.copy(access, file, 'mine')).result.orders, { inserted: 2, rebuilt: true })
    const copied = await client.read(file, 'mine', 'orders')
    t.strictSame(sorted(copied), sorted(await client.orders(access)))

    const table = 'assets_transfer_order'
    await db.updateTable(table).set({ titles: '0.2' }).where('id', '=', first).execute()
    await db.deleteFrom(table).where('id', '=', second).execute()
    const completed_at = new Date()
    await db.updateTable(table).set({ completed_at }).where('id', '=', third).execute()
    const { result, told } = await client.copy(access, file, 'mine')
    const counts = { inserted: 1, updated: 1, removed: 1 }
    t.match(result.orders, { totalItems: 2, rebuilt: false, ...counts })
    const changes = told.filter(({ list }) => list === 'transfer_orders')
    t.strictSame(
      changes.flatMap(({ removed }) => removed),
      [second],
    )
    t.strictSame(Object.keys(changes[0]?.previous ?? {}), [first])
    const columns = 'id, titles, total, marketerName, marketerCif, managementCompanyName'
    t.strictSame(query(file, `select ${columns} from transfer_orders where id = ?`, first), [
      {
        id: first,
        titles: '0.2',
        total: 1,
        marketerName: 'Banco Demo',
        marketerCif: 'A1',
        managementCompanyName: null,
      },
    ])
  })

  t.test(`${language}: the time of the refresh: result, lists, and offline`, async (t) => {
    const { caller } = await callerWithRows(2)
    const file = newFile(t)
    const access = accessOf(service, caller)
    const { result, refreshedAt } = await client.copy(access, file, 'mine')
    t.equal(result.portfolio.refreshedAt, null)
    t.equal(refreshedAt, null)
    for (const time of ['2026-11-20T05:00:00.000Z', '2026-11-21T05:00:00.000Z']) {
      await db
        .updateTable('connection')
        .set({ refreshed_at: new Date(time) })
        .where('id', '=', caller.connection.id)
        .execute()
      const next = await client.copy(access, file, 'mine')
      const times = Object.values(next.result).map((each) => new Date(each.refreshedAt ?? 0))
      t.strictSame(times, Array(3).fill(new Date(time)), 'a refresh without changes')
      t.equal(next.refreshedAt, time)
      const { facts } = await client.listWithFacts(access, 'account')
      t.strictSame(facts, { totalItems: 2, refreshedAt: time })
      const own = await client.sync(access, 'account')
      t.match(JSON.parse(JSON.stringify(own.result)), { status: 'complete', refreshedAt: time })
    }
  })

  t.test(`${language}: a limit: the newest rows, and the total of all`, async (t) => {
    const { caller } = await callerWithRows(7)
    const all = await readList(service, caller, 'account')
    const access = { ...accessOf(service, caller), pageSize: 3 }
    for (const limit of [1, 2, 3, 5, 7, 100]) {
      const { rows, facts } = await client.listWithFacts(access, 'account', { limit })
      t.strictSame(rows, all.slice(0, limit), `limit ${limit}`)
      t.equal(facts.totalItems, 7)
    }
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
    await client.list({ ...accessOf(proxy, caller) }, 'account', { limit: 2 })
    t.match(proxy.path, /\blimit=2&page=0\b/)
    t.same(proxy.counts, { none: 1 })
  })

  t.test(`${language}: typed readers: the list, its order and its digits`, async (t) => {
    const caller = await addCaller(db)
    const hours = [null, '09:00:00', '17:30:00']
    const rows = Array.from({ length: 12 }, (_, index) => ({
      [index % 4 === 0 ? 'value_date_day' : 'operation_date_day']: `2025-0${1 + (index % 3)}-10`,
      operation_date_hour: index % 4 === 0 ? null : (hours[index % 3] ?? null),
      amount: `${'9'.repeat(38)}.${'0'.repeat(37)}${index % 10}`,
      description: index % 5 === 0 ? null : 'ñ "€" \u2028 \\ 🗾',
    }))
    const retention = { retention_from: '0.10', retention_to: '15' }
    await lists.portfolio.add(db, caller.connection, ...rows, { ...retention, type: 'DIVIDENDS' })
    await lists.account.add(db, caller.connection, ...rows)
    const file = newFile(t)
    await client.copy(accessOf(service, caller), file, 'mine')
    for (const list of listNames)
      for (const range of [
        {},
        { from: '2025-02-10' },
        { to: '2025-02-10' },
        { from: '2025-02-01', to: '2025-02-28' },
      ]) {
        const parameters = Object.entries(range).map(([name, day]) => `&${name}=${day}`)
        const listed = await readList(service, caller, list, parameters.join(''))
        t.strictSame(await client.read(file, 'mine', list, range), listed, parameters.join(''))
      }
    t.strictSame(await client.read(file, 'other', 'portfolio'), [])
    for (const list of listNames) {
      const [first = {}] = await client.read(file, 'mine', list)
      const { retentionDetail: _, ...fields } = first
      const id = String(first[lists[list].id])
      const found = query(file, `select * from ${list}_transactions where id = ?`, id)
      t.match(
        found,
        withLengths([{ connection: 'mine', id, ...fields }]),
        'one column for each field',
      )
      const numbers = `select amount, typeof(amount) as kind from ${list}_transactions`
      for (const { amount, kind } of query(file, numbers).filter(({ amount }) => amount !== null))
        t.match([amount, kind], withLengths([/^9{38}\.0{37}\d$|^1$/, 'text']))
    }
    const paid = `select retentionFrom, retentionTo from portfolio_transactions where type = 'DIVIDENDS'`
    t.strictSame(query(file, paid), [{ retentionFrom: '0.10', retentionTo: '15' }])
  })

  t.test(
    `${language}: delete() removes the copy of a connection, its history only if asked`,
    async (t) => {
      const [mine, other] = [await callerWithRows(2), await callerWithRows(3)]
      const file = newFile(t)
      for (const [name, { caller, ids }] of [
        ['mine', mine],
        ['other', other],
      ] as const) {
        await client.copy(accessOf(service, caller), file, name, { history: true })
        await setAmount(ids[0] ?? '', '99')
        await client.copy(accessOf(service, caller), file, name, { history: true })
      }
      const sizes = () =>
        ['investment_copy', 'investment_row', 'investment_history'].map(
          (table) => query(file, `select * from ${table}`).length,
        )
      t.strictSame(sizes(), [6, 10, 2])
      await client.read(file, 'mine', 'delete')
      t.strictSame(sizes(), [3, 6, 2], 'the history stays')
      await client.read(file, 'mine', 'delete with history')
      t.strictSame(sizes(), [3, 6, 1])
      t.strictSame(await client.read(file, 'mine', 'portfolio'), [])
      t.equal((await client.read(file, 'other', 'portfolio')).length, 3)
      const { result } = await client.copy(accessOf(service, mine.caller), file, 'mine')
      t.match(result.portfolio, { rebuilt: true, inserted: 2 })
    },
  )

  t.test(`${language}: history: what a row was, by field and in order`, async (t) => {
    const { caller, ids } = await callerWithRows(3)
    const [first = '', second = ''] = ids
    const file = newFile(t)
    const access = accessOf(service, caller)
    const copy = () => client.copy(access, file, 'mine', { history: true })
    await copy()
    t.strictSame(query(file, 'select * from investment_changes'), [], 'the first copy is no change')
    await setAmount(first, '1.10')
    await copy()
    await setAmount(first, '1.1')
    await remove(second)
    await copy()
    await lists.portfolio.add(db, caller.connection, {
      transaction_id: second,
      amount: '3',
      operation_date_day: '2024-12-31',
      description: null,
    })
    await copy()
    const changes = query(
      file,
      `select change, id, field, before, after from investment_changes
        where list = 'portfolio_transactions' and field in ('amount', 'operationDateDay', 'titles')
        order by number, field`,
    )
    t.strictSame(changes, [
      { change: 'updated', id: first, field: 'amount', before: '0.50', after: '1.10' },
      { change: 'updated', id: first, field: 'amount', before: '1.10', after: '1.1' },
      { change: 'removed', id: second, field: 'amount', before: '1.50', after: null },
      {
        change: 'removed',
        id: second,
        field: 'operationDateDay',
        before: '2025-01-01',
        after: null,
      },
      { change: 'inserted', id: second, field: 'amount', before: null, after: '3' },
      {
        change: 'inserted',
        id: second,
        field: 'operationDateDay',
        before: null,
        after: '2024-12-31',
      },
    ])
    const seen = query(file, 'select distinct seen_at, cursor from investment_history')
    for (const { seen_at, cursor } of seen)
      t.match(
        [seen_at, cursor],
        withLengths([/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, /^[\w-]{40}$/]),
      )
    t.equal(seen.length, 3)
  })

  t.test(`${language}: a file of the other client is not made again`, async (t) => {
    const file = newFile(t)
    await writer.read(file, 'mine', 'orders')
    const version = () => query(file, 'pragma schema_version')
    const before = version()
    t.strictSame(await client.read(file, 'mine', 'orders'), [])
    t.strictSame(version(), before)
  })

  t.test(`${language}: its tables and views are those of all clients`, async (t) => {
    const folder = t.testdir({})
    const schemas = await Promise.all(
      [writer, client].map(async (each, index) => {
        const file = join(folder, `${index}.db`)
        await each.read(file, 'mine', 'orders')
        const texts = query(file, 'select name, sql from sqlite_master order by name')
        return texts.map(({ name, sql }) => [name, String(sql).replaceAll(/\s+/g, ' ')])
      }),
    )
    t.strictSame(schemas[0], schemas[1])
  })
}
