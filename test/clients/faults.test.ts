import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { InvestmentData } from '../../clients/typescript/src/index.ts'
import { failureOf, type Row, startDrivers } from '../support/clients/drivers.ts'
import { type Fault, startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { addCaller, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { db } = service

const FAULTS: readonly Fault[] = [
  ...([
    'unavailable',
    'none',
    'reset',
    'cut',
    'none',
    'quota',
    'unavailable',
    'cut',
    'none',
  ] as const),
  ...(['cut', 'reset', 'quota', 'none', 'none'] as const),
]

for (const [language, client] of Object.entries(startDrivers(t))) {
  for (const list of ['portfolio', 'account'] as const) {
    t.test(`${language}, ${list}: 503, 429, resets, cut bodies: each row once`, async (t) => {
      const caller = await addCaller(db)
      const { table, idColumn: id } = lists[list]
      const rows = Array.from({ length: 90 }, (_, index) => ({ amount: `${index}.50` }))
      const ids = await lists[list].add(db, caller.connection, ...rows)
      const fault = (n: number) => FAULTS[n % FAULTS.length] as Fault
      const proxy = await startFaultProxy(t, { target: service.url, fault })
      const access = { ...accessOf(proxy, caller), pageSize: 4 }
      t.strictSame(await client.list(access, list), await readList(service, caller, list))

      const copy = new Map<unknown, Row>()
      const { pages, result } = await client.sync(access, list)
      t.equal(pages.length, 23)
      for (const { upserts } of pages)
        for (const row of upserts) {
          t.notOk(copy.has(row[lists[list].id]), 'a row of one page')
          copy.set(row[lists[list].id], row)
        }
      const listed = await readList(service, caller, list)
      t.strictSame([...copy.values()].sort(byId(list)), listed.toSorted(byId(list)))
      t.match(result, { status: 'complete', totalItems: 90 })

      await db
        .updateTable(table)
        .set({ amount: '1.000' })
        .where(id, 'in', ids.slice(0, 9))
        .execute()
      await db.deleteFrom(table).where(id, 'in', ids.slice(9, 18)).execute()
      const next = await client.sync(access, list, pages.at(-1)?.cursor)
      const changed = next.pages.flatMap(({ upserts }) => upserts)
      const removed = next.pages.flatMap(({ removed }) => removed)
      t.strictSame(changed.map((row) => row[lists[list].id]).sort(), ids.slice(0, 9).sort())
      t.ok(changed.every(({ amount }) => amount === '1.000'))
      t.strictSame(removed.sort(), ids.slice(9, 18).sort())
      t.match(next.result, { status: 'complete', totalItems: 81 })
      for (const name of ['unavailable', 'quota', 'reset', 'cut'] as const)
        t.ok(Number(proxy.counts[name]) >= 5, `${name}: ${proxy.counts[name]} requests`)
    })
  }

  t.test(`${language}: large compressed pages, cut: each row once`, async (t) => {
    const caller = await addCaller(db)
    const description = 'a text that makes the page large enough to be compressed and sent in parts'
    const rows = Array.from({ length: 400 }, (_, index) => ({ amount: `${index}.0`, description }))
    await lists.portfolio.add(db, caller.connection, ...rows)
    const fault = (n: number): Fault => (n % 2 === 0 ? 'cut' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault })
    const access = { ...accessOf(proxy, caller), pageSize: 200 }
    t.strictSame(
      await client.list(access, 'portfolio'),
      await readList(service, caller, 'portfolio'),
    )
    t.same(proxy.counts, { none: 2, cut: 2 })
  })

  t.test(`${language}: waits for Retry-After`, async (t) => {
    const caller = await addCaller(db)
    const fault = (n: number): Fault => (n === 0 ? 'unavailable' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter: '1' })
    const access = { ...accessOf(proxy, caller), baseDelayMs: 500 }
    const start = performance.now()
    t.strictSame(await client.orders(access), [])
    t.ok(performance.now() - start > 990, 'the random delay comes after it')
  })

  t.test(`${language}: a call ends at its own limit`, async (t) => {
    const caller = await addCaller(db)
    const silent = await startFaultProxy(t, { target: service.url, fault: () => 'silent' })
    const limits = { callTimeoutMs: 300, timeoutMs: 3_600_000 }
    const short = { ...accessOf(silent, caller), ...limits }
    const message = 'The call did not end in time'
    const error = { name: 'TransportError', code: 'call_timeout', message, attempts: 1 }
    t.match(await failureOf(client.orders(short)), error)
    // The delay would end after the limit.
    const fault = () => 'unavailable' as const
    const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter: '50' })
    const long = { ...accessOf(proxy, caller), callTimeoutMs: 40_000 }
    t.match(await failureOf(client.orders(long)), { code: 'service_unavailable' })
    t.same(proxy.counts, { unavailable: 1 })
  })

  t.test(`${language}: the limit of a call is one for all its pages`, async (t) => {
    const caller = await addCaller(db)
    await lists.account.add(db, caller.connection, {}, {})
    const fault = (n: number) => (n === 1 ? 'unavailable' : 'none')
    const before = () => setTimeout(2000)
    const options = { target: service.url, fault, retryAfter: '3', before }
    const proxy = await startFaultProxy(t, options)
    const access = { ...accessOf(proxy, caller), pageSize: 1, callTimeoutMs: 6000 }
    // The delay would end 7 s after the begin of the call, and 5 s after that of the page.
    t.match(await failureOf(client.list(access, 'account')), { code: 'service_unavailable' })
    t.same(proxy.counts, { none: 1, unavailable: 1 })
  })

  t.test(`${language}: the server closes idle connections: no failed attempt`, async (t) => {
    const caller = await addCaller(db)
    await lists.account.add(db, caller.connection, {}, {}, {})
    const fault = () => 'hang up' as const
    const proxy = await startFaultProxy(t, { target: service.url, fault })
    const access = { ...accessOf(proxy, caller), pageSize: 1, attempts: 1 }
    t.equal((await client.list(access, 'account')).length, 3)
    t.same(proxy.counts, { 'hang up': 3 })
  })

  t.test(`${language}: an incomplete export is an error after a part of it`, async (t) => {
    const caller = await addCaller(db)
    await lists.account.add(db, caller.connection, {}, {}, {})
    for (const name of ['exported', 'csv'] as const)
      for (const [last, code] of [
        ['cut', 'incomplete_body'],
        ['short', 'incomplete_body'],
        ['stall', 'timeout'],
      ] as const) {
        // The client does not count the rows of a CSV file.
        if (name === 'csv' && last === 'short') continue
        const fault = (n: number) => (['unavailable', last] as const)[n] ?? 'none'
        const proxy = await startFaultProxy(t, { target: service.url, fault })
        const access = { ...accessOf(proxy, caller), timeoutMs: 2000 }
        const failed = await failureOf(client[name](access, 'account'))
        t.match(failed, { name: 'TransportError', code, status: 200 }, `${name}, ${last}`)
        t.same(proxy.counts, { unavailable: 1, [last]: 1 })
      }
  })
}

t.test(
  'TypeScript: an export waits for an app that takes longer than the time limit',
  async (t) => {
    const caller = await addCaller(db)
    await lists.account.add(db, caller.connection, {}, {}, {})
    const api = new InvestmentData({ baseUrl: service.url, token: caller.token, timeoutMs: 2000 })
    let rows = 0
    for await (const _ of api.connection(caller.connection.token).exportAccountTransactions()) {
      if (rows === 0) await setTimeout(2500)
      rows += 1
    }
    t.equal(rows, 3)
  },
)

function byId(list: 'portfolio' | 'account') {
  return (a: Row, b: Row) => String(a[lists[list].id]).localeCompare(String(b[lists[list].id]))
}
