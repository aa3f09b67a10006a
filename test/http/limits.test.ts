import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { RequestContext } from '../../src/http/request-context.ts'
import { ConcurrencyLimit } from '../../src/limits/concurrency.ts'
import { Limits } from '../../src/limits/context.ts'
import { Unavailable } from '../../src/limits/errors.ts'
import { FairScheduler } from '../../src/limits/fair-scheduler.ts'
import { Rejections } from '../../src/limits/rejections.ts'
import { mayTake, RequestLimit, Tenant } from '../../src/limits/requests.ts'
import { contextOf } from '../support/database.ts'

/** Takes units for tenants in turn, until none gets more. @returns the units of each */
function sharesOf(tenants: number, total: number): number[] {
  const shares = Array<number>(tenants).fill(0)
  for (let before = -1, used = 0; used > before; ) {
    before = used
    for (const [index, share] of shares.entries()) {
      if (!mayTake(1, share, total - used)) continue
      shares[index] = share + 1
      used += 1
    }
  }
  return shares
}

t.test('shares: three quarters for one tenant, three sevenths each for two', (t) => {
  t.same(sharesOf(1, 400), [300])
  t.same(sharesOf(2, 700), [300, 300])
  t.same(sharesOf(3, 1_000), [300, 300, 300])
  t.ok(mayTake(7, 0, 7), 'a tenant that has nothing may take all that is free')
  t.notOk(mayTake(8, 0, 7))
  t.end()
})

t.test('RequestLimit: exactly the maximum, and the share of each tenant', (t) => {
  const limit = new RequestLimit(20)
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  const fill = (tenant: Tenant) => {
    let entered = 0
    while (limit.enter(tenant)) entered += 1
    return entered
  }
  t.equal(fill(busy), 15)
  t.equal(fill(other), 3)
  for (let n = 18; n < 20; n += 1) t.ok(limit.enter(new Tenant()), 'a new tenant finds room')
  t.ok(limit.full)
  t.notOk(limit.enter(new Tenant()))
  limit.leave(busy)
  t.notOk(limit.full)
  t.ok(limit.enter(new Tenant()))
  t.end()
})

t.test('request of a departed client: it takes no share when its app is known', (t) => {
  const limits = new Limits(4, 1)
  const [address, app] = [new Tenant(), new Tenant('app')]
  const context = new RequestContext(limits)
  context.enter(address)
  t.equal(address.requests, 1)
  context.end(false)
  context.enter(app)
  t.same([address.requests, app.requests], [0, 0])
  t.end()
})

t.test(
  'tenantOfAddress: forgets the client address that was unused for longest, above 10,000',
  (t) => {
    const limits = new Limits(100, 1)
    const address = (n: number) => `10.0.${n >> 8}.${n & 255}`
    const first = limits.callers.tenantOfAddress(address(0))
    for (let n = 1; n < 10_000; n += 1) limits.callers.tenantOfAddress(address(n))
    t.equal(limits.callers.tenantOfAddress(address(0)), first)
    const second = limits.callers.tenantOfAddress(address(1))
    for (let n = 10_000; n < 20_000; n += 1) limits.callers.tenantOfAddress(address(n))
    t.not(limits.callers.tenantOfAddress(address(1)), second)
    t.end()
  },
)

t.test('tenantOfAddress: one tenant for an IPv4 address, and for a /64 network of IPv6', (t) => {
  const limits = new Limits(1, 1)
  const groups = [
    ['10.0.0.1'],
    ['10.0.0.2'],
    ['::ffff:10.0.0.1'],
    ['2001:db8:1:2::5', '2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3::'],
    ['2001:db8:1:3::5'],
    ['2001:db8::5', '2001:db8::a:b:c:d'],
    ['::1'],
  ]
  const tenants = groups.map((ips) => new Set(ips.map((ip) => limits.callers.tenantOfAddress(ip))))
  for (const each of tenants) t.equal(each.size, 1)
  t.equal(new Set(tenants.flatMap((each) => [...each])).size, groups.length)
  t.end()
})

t.test('memory: large requests have three quarters of it, small ones all', (t) => {
  const fits = (rows: number, bytes: number) => {
    const context = contextOf({ rows, limits: new Limits(1, 400_000) })
    return context.memory.take(bytes) !== undefined
  }
  t.ok(fits(1_001, 300_000))
  t.notOk(fits(1_001, 300_001))
  t.ok(fits(1_000, 400_000))
  t.notOk(fits(1_000, 400_001))
  t.end()
})

t.test('memory: a large request sets aside 512 bytes a row, at most a quarter of its part', (t) => {
  const setAside = (rows: number) => {
    const limits = new Limits(1, 4_000_000)
    const { memory } = contextOf({ rows, limits })
    t.ok(memory.setAside())
    return limits.memory.used
  }
  t.equal(setAside(1_000), 0)
  t.equal(setAside(1_001), 1_001 * 512)
  t.equal(setAside(10_000), (0.75 * 4_000_000) / 4)
  t.end()
})

t.test('memory: a request whose client is gone takes nothing', (t) => {
  const limits = new Limits(1, 400_000)
  const context = contextOf({ limits })
  context.end(false)
  t.equal(context.memory.take(1), undefined)
  t.ok(context.memory.takeForJson(100))
  context.memory.replaceJson(100)
  t.equal(limits.memory.used, 0)
  t.end()
})

const tenant = new Tenant('app')

t.test('ConcurrencyLimit: exactly its places, and those of large reads', async (t) => {
  const limit = new ConcurrencyLimit({ places: 5, largePlaces: 2, queue: 10 })
  const enter = (large: boolean) => limit.enter(contextOf({ tenant }), large, 1_000)
  for (let n = 0; n < 2; n += 1) t.equal(enter(true), undefined, 'at once')
  const large = enter(true)
  for (let n = 0; n < 3; n += 1) t.equal(enter(false), undefined, 'at once')
  const small = enter(false)
  t.equal(limit.waiting, 2)
  limit.leave(contextOf({ tenant }), false)
  await small
  t.equal(limit.waiting, 1, 'the large read waits for a large one to end')
  limit.leave(contextOf({ tenant }), true)
  await large
  t.equal(limit.waiting, 0)
  limit.leave(contextOf({ tenant }), false)
  const next = enter(true)
  t.equal(limit.waiting, 1, 'two large reads are in flight, one of them after a wait')
  limit.leave(contextOf({ tenant }), true)
  await next
  t.equal(limit.waiting, 0)
})

t.test('ConcurrencyLimit: tenants take turns', async (t) => {
  const limit = new ConcurrencyLimit({ places: 1, largePlaces: 1, queue: 10 })
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  limit.enter(contextOf({ tenant }), false, 1_000)
  const order: string[] = []
  const all = [busy, busy, busy, other].map(async (tenant) => {
    await limit.enter(contextOf({ tenant }), false, 1_000)
    order.push(String(tenant.appId))
    limit.leave(contextOf({ tenant }), false)
  })
  limit.leave(contextOf({ tenant }), false)
  await Promise.all(all)
  t.same(order, ['busy', 'other', 'busy', 'busy'])
})

t.test(
  'ConcurrencyLimit: a full queue rejects the newest read of the busiest tenant',
  async (t) => {
    const limit = new ConcurrencyLimit({ places: 1, largePlaces: 1, queue: 3 })
    const [busy, other] = [new Tenant('busy'), new Tenant('other')]
    limit.enter(contextOf({ tenant }), false, 1_000)
    const enter = (tenant: Tenant) => limit.enter(contextOf({ tenant }), false, 1_000)
    const results = [enter(busy), enter(busy), enter(busy), enter(other)]
    t.throws(() => enter(busy), Unavailable)
    for (let n = 0; n < 3; n += 1) limit.leave(contextOf({ tenant }), false)
    const statuses = (await Promise.allSettled(results)).map(({ status }) => status)
    t.same(statuses, ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  },
)

t.test('ConcurrencyLimit: skips reads whose client is gone, and those without time', async (t) => {
  const limit = new ConcurrencyLimit({ places: 1, largePlaces: 1, queue: 3 })
  t.throws(() => limit.enter(contextOf({ tenant }), false, 0), Unavailable)
  limit.enter(contextOf({ tenant }), false, 1_000)
  const gone = contextOf({ tenant })
  const rejected = t.rejects(limit.enter(gone, false, 1_000) ?? Promise.resolve(), Unavailable)
  const next = limit.enter(contextOf({ tenant }), false, 1_000)
  gone.end(false)
  limit.leave(contextOf({ tenant }), false)
  await rejected
  await next
  await t.rejects(limit.enter(contextOf({ tenant }), false, 1) ?? Promise.resolve(), Unavailable)
})

t.test('FairScheduler: three chunks a turn, in the order of the calls', async (t) => {
  const scheduler = new FairScheduler()
  const order: number[] = []
  for (let n = 0; n < 7; n += 1) void scheduler.nextTurn().then(() => order.push(n))
  for (const count of [3, 6, 7]) {
    await nextTurn()
    t.equal(order.length, count)
  }
  t.same(order, [0, 1, 2, 3, 4, 5, 6])
})

t.test('FairScheduler: a pause of 1 ms, for 50 ms after a small request', async (t) => {
  const { performance, setTimeout } = globalThis
  const now = performance.now()
  const pauses: unknown[] = []
  t.intercept(performance, 'now', { value: () => now })
  t.intercept(globalThis, 'setTimeout', {
    value: (run: () => void, ms: number) => {
      pauses.push(ms)
      return setTimeout(run, ms)
    },
  })
  const scheduler = new FairScheduler()
  for (const ago of [50, 49.9, 0, 50.1]) {
    scheduler.smallRequestAt = now - ago
    await scheduler.nextTurn()
    pauses.push(ago)
  }
  t.same(pauses, [50, 1, 49.9, 1, 0, 50.1])
})

t.test('Rejections: 100 of a tenant do not wait, further ones wait their turn', async (t) => {
  const rejections = new Rejections()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  for (let n = 0; n < 100; n += 1) await rejections.turn(busy, performance.now())
  const order: number[] = []
  const waiting = Array.from({ length: 5 }, async (_, n) => {
    t.ok(await rejections.turn(busy, performance.now()))
    order.push(n)
  })
  t.equal(rejections.waiting, 5)
  t.ok(await rejections.turn(other, performance.now()))
  t.same(order, [], 'another tenant does not wait')
  await Promise.all(waiting)
  t.same(order, [0, 1, 2, 3, 4])
  t.equal(rejections.waiting, 0)
  const long = rejections.turn(busy, performance.now() - 5_000)
  t.equal(rejections.waiting, 0, 'a request that has taken 5 seconds does not wait')
  t.ok(await long)
})

t.test('Rejections: 2,000 wait, at most three quarters of them of one tenant', async (t) => {
  const rejections = new Rejections()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  const turns: Promise<boolean>[] = []
  const add = (tenant: Tenant, count: number) => {
    for (let n = 0; n < count; n += 1) turns.push(rejections.turn(tenant, performance.now()))
  }
  add(busy, 100 + 1_500)
  t.equal(rejections.waiting, 1_500)
  t.notOk(await rejections.turn(busy, performance.now()), 'the connection is closed')
  add(other, 100 + 375)
  t.equal(rejections.waiting, 1_875)
  t.notOk(await rejections.turn(other, performance.now()))
  t.same(new Set(await Promise.all(turns)), new Set([true]), 'within 5 seconds')
  t.equal(rejections.waiting, 0)
})
