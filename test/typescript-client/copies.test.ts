import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { type Driver, failureOf, startDrivers } from '../support/clients/drivers.ts'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { readCopy, sorted } from '../support/clients/sqlite-copies.ts'
import { addCaller, type Caller, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/** Copies that the clients keep in SQLite with one call. */
const service = await startService(t)
const { db } = service
const drivers = startDrivers(t)
const clients = Object.entries(drivers)
const LISTS = ['portfolio', 'account'] as const

async function compare(t: Test, caller: Caller, file: string, name: string): Promise<void> {
  for (const list of LISTS) {
    const table = sorted(await readList(service, caller, list))
    t.strictSame(sorted(readCopy(file, name, list)), table, `${list}: ${table.length} rows`)
  }
}

/** Adds, changes and removes rows of both lists. */
async function change(caller: Caller, step: number): Promise<void> {
  for (const list of LISTS) {
    const { table, idColumn: id } = lists[list]
    const amount = `${step}234567890123456789.${'10'.repeat(step + 1)}`
    const rows = Array.from({ length: 5 }, () => ({ amount, description: 'ñ "€"' }))
    const [first = '', second = ''] = await lists[list].add(db, caller.connection, ...rows)
    await db
      .updateTable(table)
      .set({ amount: `-${amount}0` })
      .where(id, '=', first)
      .execute()
    await db.deleteFrom(table).where(id, '=', second).execute()
  }
}

async function callerWithRows(count: number): Promise<Caller> {
  const caller = await addCaller(db)
  for (const list of LISTS)
    await lists[list].add(db, caller.connection, ...Array.from({ length: count }, () => ({})))
  return caller
}

/** Lets a client copy through a proxy whose n-th request has a fault. */
async function copyWith(t: Test, client: Driver, caller: Caller, file: string, faults: Fault[]) {
  const fault = (n: number) => faults[n] ?? 'none'
  const proxy = await startFaultProxy(t, { target: service.url, fault })
  const access = { ...accessOf(proxy, caller), pageSize: 4, attempts: 1 }
  return { proxy, result: client.copy(access, file, 'mine') }
}

t.test('all clients in turn keep one copy: after each step it equals the tables', async (t) => {
  const caller = await callerWithRows(20)
  const file = join(t.testdir({}), 'copy.db')
  const access = { ...accessOf(service, caller), pageSize: 7 }
  for (let step = 0; step <= 6; step += 1) {
    const [name, client] = clients[step % clients.length] as (typeof clients)[number]
    const { result } = await client.copy(access, file, 'mine')
    const totalItems = 20 + 4 * step
    const counts = { inserted: step === 0 ? 20 : 4, updated: 0, removed: 0 }
    const expected = { totalItems, rebuilt: step === 0, ...counts, refreshedAt: null }
    const orders = { ...expected, totalItems: 0, inserted: 0 }
    t.strictSame(
      result,
      { portfolio: expected, account: expected, orders },
      `${name}, step ${step}`,
    )
    await compare(t, caller, file, 'mine')
    await change(caller, step)
  }
})

for (const [language, client] of clients) {
  t.test(`${language}: one file has the copies of several connections`, async (t) => {
    const file = join(t.testdir({}), 'copy.db')
    const callers = [await callerWithRows(3), await callerWithRows(5)]
    for (const [index, caller] of callers.entries())
      await client.copy(accessOf(service, caller), file, `user ${index}`)
    for (const [index, caller] of callers.entries()) await compare(t, caller, file, `user ${index}`)
    t.strictSame(readCopy(file, 'other', 'account'), [])
  })

  t.test(
    `${language}: an expired cursor: the app reads the old copy until the new one is complete`,
    async (t) => {
      const caller = await callerWithRows(10)
      const file = join(t.testdir({}), 'copy.db')
      await client.copy({ ...accessOf(service, caller), pageSize: 4 }, file, 'mine')
      await change(caller, 1)
      // The second page of the new copy fails.
      const first = await copyWith(t, client, caller, file, ['expired', 'none', 'unavailable'])
      t.match(await failureOf(first.result), { code: 'service_unavailable' })
      t.equal(readCopy(file, 'mine', 'portfolio').length, 10, 'the old copy')
      const counts: number[] = []
      const proxy = await startFaultProxy(t, {
        target: service.url,
        fault: () => 'none',
        before: async () => {
          counts.push(readCopy(file, 'mine', 'portfolio').length)
        },
      })
      const access = { ...accessOf(proxy, caller), pageSize: 4 }
      const { result } = await client.copy(access, file, 'mine')
      t.match(result, { portfolio: { totalItems: 14, rebuilt: true }, account: { rebuilt: false } })
      // Three more pages of the new copy, since its first one is kept; two of the other list; the orders.
      t.strictSame(counts, [10, 10, 10, 14, 14, 14])
      await compare(t, caller, file, 'mine')
    },
  )

  t.test(`${language}: the cursor of an incomplete copy expires: a new one`, async (t) => {
    const caller = await callerWithRows(10)
    const file = join(t.testdir({}), 'copy.db')
    const first = await copyWith(t, client, caller, file, ['none', 'unavailable'])
    t.match(await failureOf(first.result), { code: 'service_unavailable' })
    const { proxy, result } = await copyWith(t, client, caller, file, ['expired'])
    t.match((await result).result, { portfolio: { totalItems: 10, rebuilt: true } })
    t.same(proxy.counts, { expired: 1, none: 7 }, 'three pages of each list, and the orders')
    await compare(t, caller, file, 'mine')
  })

  t.test(`${language}: changes that are never known: the error, and the old copy`, async (t) => {
    const caller = await callerWithRows(2)
    const file = join(t.testdir({}), 'copy.db')
    await client.copy(accessOf(service, caller), file, 'mine')
    const { proxy, result } = await copyWith(t, client, caller, file, Array(10).fill('expired'))
    t.match(await failureOf(result), { name: 'CursorExpiredError', code: 'cursor_expired' })
    t.same(proxy.counts, { expired: 4 })
    await compare(t, caller, file, 'mine')
  })

  t.test(`${language}: a copy with another number of rows is built again`, async (t) => {
    const caller = await callerWithRows(6)
    const file = join(t.testdir({}), 'copy.db')
    const access = accessOf(service, caller)
    await client.copy(access, file, 'mine')
    const sqlite = new DatabaseSync(file)
    sqlite.exec('delete from investment_row where id = (select min(id) from investment_row)')
    sqlite.close()
    const { result } = await client.copy(access, file, 'mine')
    t.equal(Number(result.portfolio.rebuilt) + Number(result.account.rebuilt), 1)
    await compare(t, caller, file, 'mine')
  })

  t.test(
    `${language}: a page that cannot be stored: neither its rows nor its cursor`,
    async (t) => {
      const caller = await callerWithRows(6)
      const file = join(t.testdir({}), 'copy.db')
      const access = accessOf(service, caller)
      await client.copy(access, file, 'mine')
      const before = readCopy(file, 'mine', 'account')
      await change(caller, 2)
      const sqlite = new DatabaseSync(file)
      sqlite.exec(`create trigger full before insert on investment_row
      when new.row like '%"movementId"%' and (select count(*) from investment_row) > 13
      begin select raise(abort, 'no space left'); end`)
      t.match((await failureOf(client.copy(access, file, 'mine'))).message, /no space left/)
      t.strictSame(readCopy(file, 'mine', 'account'), before)
      sqlite.exec('drop trigger full')
      sqlite.close()
      await client.copy(access, file, 'mine')
      await compare(t, caller, file, 'mine')
    },
  )

  t.test(
    `${language}: two processes that write one copy: a conflict, and a right copy`,
    async (t) => {
      const caller = await callerWithRows(3)
      const file = join(t.testdir({}), 'copy.db')
      const access = accessOf(service, caller)
      await client.copy(access, file, 'mine')
      await change(caller, 3)
      let other: Promise<unknown> | undefined
      const proxy = await startFaultProxy(t, {
        target: service.url,
        fault: () => 'none',
        // The client has read its cursor, but not yet the changes since it.
        before: async () => {
          other ??= drivers.TypeScript.copy(access, file, 'mine')
          await other
        },
      })
      // Its response is older than that of the other process.
      const failed = failureOf(client.copy({ ...access, url: proxy.url }, file, 'mine'))
      t.match(await failed, { name: 'CopyError', code: 'conflict' })
      await client.copy(access, file, 'mine')
      await compare(t, caller, file, 'mine')
    },
  )

  t.test(`${language}: your own copy with another number of rows: count_differs`, async (t) => {
    const caller = await callerWithRows(3)
    const access = accessOf(service, caller)
    const { result } = await client.sync(access, 'account', undefined, 2)
    t.strictSame(result, { status: 'count_differs', totalItems: 3, count: 2 })
    t.match(await client.sync(access, 'account', undefined, 3), { result: { status: 'complete' } })
  })
}
