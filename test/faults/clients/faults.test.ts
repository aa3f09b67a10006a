import t from 'tap'
import { failureOf, type Row, startDrivers } from '../../clients/drivers.ts'
import { type Fault, startFaultProxy } from '../../clients/fault-proxy.ts'
import { accessOf, idOf, readList, tableOf } from '../../clients/service.ts'
import { addCaller, lists } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'

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
      const { table, id } = tableOf[list]
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
          t.notOk(copy.has(row[idOf[list]]), 'a row of one page')
          copy.set(row[idOf[list]], row)
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
      t.strictSame(changed.map((row) => row[idOf[list]]).sort(), ids.slice(0, 9).sort())
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

  t.test(`${language}: as many attempts as the limit, then the last error`, async (t) => {
    const caller = await addCaller(db)
    for (const [fault, error] of [
      ['unavailable', { name: 'ProblemError', code: 'service_unavailable', status: 503 }],
      ['quota', { name: 'ProblemError', code: 'too_many_requests', status: 429 }],
      ['cut', { name: 'TransportError' }],
      ['reset', { name: 'TransportError' }],
    ] as const) {
      const proxy = await startFaultProxy(t, { target: service.url, fault: () => fault })
      const access = { ...accessOf(proxy, caller), attempts: 3 }
      t.match(await failureOf(client.list(access, 'account')), error)
      t.equal(proxy.counts[fault], 3, fault)
    }
  })

  t.test(`${language}: no response in time: timeout, then a new attempt`, async (t) => {
    const caller = await addCaller(db)
    const fault = (n: number): Fault => (n === 0 ? 'silent' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault })
    const access = { ...accessOf(proxy, caller), timeoutMs: 2_000 }
    t.strictSame(await client.list(access, 'account'), [])
    const silent = await startFaultProxy(t, { target: service.url, fault: () => 'silent' })
    const once = { ...accessOf(silent, caller), timeoutMs: 300, attempts: 1 }
    t.match(await failureOf(client.orders(once)), { name: 'TransportError', code: 'timeout' })
  })

  t.test(`${language}: waits for Retry-After; beyond the limit: the error at once`, async (t) => {
    const caller = await addCaller(db)
    const fault = (n: number): Fault => (n === 0 ? 'unavailable' : 'none')
    const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter: '1' })
    const access = accessOf(proxy, caller)
    const start = performance.now()
    t.strictSame(await client.orders(access), [])
    t.ok(performance.now() - start > 990)
    const longer = await startFaultProxy(t, { target: service.url, fault, retryAfter: '61' })
    t.match(await failureOf(client.orders(accessOf(longer, caller))), {
      code: 'service_unavailable',
    })
    t.same(longer.counts, { unavailable: 1 })
  })
}

function byId(list: 'portfolio' | 'account') {
  return (a: Row, b: Row) => String(a[idOf[list]]).localeCompare(String(b[idOf[list]]))
}
