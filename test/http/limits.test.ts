import { setImmediate as nextImmediate } from 'node:timers/promises'
import t from 'tap'
import { Admission } from '../../src/limits/admission.ts'
import { FairQueue } from '../../src/limits/fair-queue.ts'
import { Limits } from '../../src/limits/limits.ts'
import { Rejections } from '../../src/limits/rejections.ts'
import { mayTake } from '../../src/limits/shares.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import { WriteScheduler } from '../../src/limits/write-scheduler.ts'
import { accountOf, readerOf } from '../support/database.ts'

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

t.test('requests in flight: exactly the maximum, and the share of each tenant', (t) => {
  const limits = new Limits(20, 1)
  const enter = (ip: string) => {
    const admission = new Admission(limits)
    try {
      admission.enter(ip)
      return admission
    } catch {
      return undefined
    }
  }
  const fill = (ip: string) => {
    const entered: Admission[] = []
    for (let next = enter(ip); next; next = enter(ip)) entered.push(next)
    return entered
  }
  const [first, ...others] = fill('10.0.0.1')
  t.equal(others.length, 14)
  t.equal(fill('10.0.0.2').length, 3)
  for (let n = 18; n < 20; n += 1) t.ok(enter(`10.1.0.${n}`), 'a new tenant finds room')
  t.notOk(enter('10.0.0.3'))
  first?.close()
  t.ok(enter('10.0.0.3'))
  t.equal(limits.requests.inFlight, 20)
  t.end()
})

t.test('request of a departed client: it takes no share when its app is known', (t) => {
  const limits = new Limits(4, 1)
  limits.tenants.knowApp('client', 'app')
  const [address, app] = [limits.tenants.of('10.0.0.1'), limits.tenants.of('', 'client')]
  const admission = new Admission(limits)
  admission.enter('10.0.0.1')
  const { shares } = limits.requests
  t.equal(shares.of(address), 1)
  admission.close()
  admission.enter('10.0.0.1', 'client')
  t.same([shares.of(address), shares.of(app), app.appId], [0, 0, 'app'])
  t.end()
})

t.test(
  'tenants of addresses: forgets the client address that was unused for longest, above 10,000',
  (t) => {
    const limits = new Limits(100, 1)
    const address = (n: number) => `10.0.${n >> 8}.${n & 255}`
    const first = limits.tenants.of(address(0))
    for (let n = 1; n < 10_000; n += 1) limits.tenants.of(address(n))
    t.equal(limits.tenants.of(address(0)), first)
    const second = limits.tenants.of(address(1))
    for (let n = 10_000; n < 20_000; n += 1) limits.tenants.of(address(n))
    t.not(limits.tenants.of(address(1)), second)
    t.end()
  },
)

t.test(
  'tenants of addresses: one tenant for an IPv4 address, and for a /64 network of IPv6',
  (t) => {
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
    const tenants = groups.map((ips) => new Set(ips.map((ip) => limits.tenants.of(ip))))
    for (const each of tenants) t.equal(each.size, 1)
    t.equal(new Set(tenants.flatMap((each) => [...each])).size, groups.length)
    t.end()
  },
)

t.test('memory: one app has three quarters of it', (t) => {
  const fits = (bytes: number) => {
    const account = accountOf(new Limits(1, 400_000))
    account.take(1)
    return account.refusal(bytes - 1) === undefined
  }
  t.ok(fits(300_000))
  t.notOk(fits(300_004))
  t.end()
})

t.test('memory: a large request needs room for 512 bytes a row, at most for a quarter', (t) => {
  const room = (rows: number, used: number) => {
    const limits = new Limits(1, 4_000_000)
    limits.memory.shares.add(new Tenant('other'), used)
    const { memory, expectedBytes } = readerOf({ rows, limits })
    return memory.refusal(expectedBytes) === undefined
  }
  t.ok(room(1_000, 3_999_999))
  t.ok(room(1_001, 4_000_000 - 1_001 * 512))
  t.notOk(room(1_001, 4_000_001 - 1_001 * 512))
  t.ok(room(10_000, 3_000_000))
  t.notOk(room(10_000, 3_000_001))
  t.end()
})

t.test('large: more than 1,000 rows, 1 MiB, or a deep page of an app with slow ones', (t) => {
  const tenant = new Tenant('app')
  const limits = new Limits(1, 2 ** 28)
  const { pageSizes } = limits
  const isLarge = (rows: number, skipped = 0) => {
    const reader = readerOf({ tenant, limits })
    reader.expectRows(rows, skipped)
    return reader.isLarge
  }
  t.same(
    [isLarge(1_000), isLarge(1_001), isLarge(20, 10_000), isLarge(20, 10_001)],
    [false, true, false, true],
  )
  while (pageSizes.deepMsOf(tenant) > 100) pageSizes.measureDeepPage(tenant, 0)
  t.notOk(isLarge(20, 10_001))
  pageSizes.measureRows(tenant, 10_000)
  t.same([isLarge(104), isLarge(105)], [false, true])
  t.end()
})

t.test('memory: a request whose client is gone takes nothing', (t) => {
  const limits = new Limits(1, 400_000)
  const account = accountOf(limits)
  account.close(false)
  t.match(account.refusal(1), { name: 'Unavailable' })
  t.ok(account.take(100))
  account.count(100)
  t.equal(limits.memory.used, 0)
  t.end()
})

interface Item {
  tenant: Tenant
  name: string
  isContinued: boolean
}

/** Adds items of a tenant, which are named. */
function addTo(queue: FairQueue<Item>, tenant: Tenant, names: string, isContinued = false): void {
  for (const name of names) queue.add({ tenant, name, isContinued })
}

t.test('FairQueue: tenants take turns', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  addTo(queue, busy, 'abc')
  addTo(queue, other, 'd')
  t.equal(queue.length, 4)
  t.same(namesOf(queue), ['a', 'd', 'b', 'c'])
  t.equal(queue.length, 0)
  t.end()
})

t.test('FairQueue: a tenant that arrives during the turn of another one is next', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  addTo(queue, busy, 'abc')
  t.equal(queue.take(() => true)?.name, 'a')
  addTo(queue, other, 'd')
  t.same(namesOf(queue), ['d', 'b', 'c'])
  t.end()
})

t.test(
  'FairQueue: after a use of 1,000, a tenant waits until the others have used as much',
  (t) => {
    const queue = new FairQueue<Item>()
    const [slow, fast, other] = [new Tenant('slow'), new Tenant('fast'), new Tenant('other')]
    addTo(queue, slow, 'S')
    t.equal(queue.take(() => true)?.name, 'S')
    queue.use(slow, 999)
    addTo(queue, slow, 'S')
    addTo(queue, fast, 'f')
    addTo(queue, other, 'o')
    const order: (string | undefined)[] = []
    // Each turn of the others uses 250, and they wait again.
    for (let turn = 0; turn < 10; turn += 1) {
      const item = queue.take(() => true)
      order.push(item?.name)
      if (item === undefined || item.tenant === slow) continue
      queue.use(item.tenant, 249)
      addTo(queue, item.tenant, item.name)
    }
    t.same(order.join(''), 'fofofofoSf')
    t.end()
  },
)

t.test('FairQueue: a tenant saves up nothing while it does not wait', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, rare] = [new Tenant('busy'), new Tenant('rare')]
  for (let turn = 0; turn < 20; turn += 1) {
    addTo(queue, busy, 'b')
    queue.take(() => true)
  }
  addTo(queue, rare, 'rrr')
  addTo(queue, busy, 'bbb')
  t.same(namesOf(queue).join(''), 'rrbrbb')
  t.end()
})

t.test('FairQueue: a use without an item counts, from the use of those that were served', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, other, rare] = [new Tenant('busy'), new Tenant('other'), new Tenant('rare')]
  addTo(queue, other, 'o'.repeat(20))
  for (let turn = 0; turn < 20; turn += 1) queue.take(() => true)
  queue.pass(busy, 3)
  addTo(queue, busy, 'b')
  addTo(queue, rare, 'rrrr')
  t.same(namesOf(queue).join(''), 'rrrbr')
  t.end()
})

t.test('FairQueue: a continued item goes before the others of its tenant', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  addTo(queue, busy, 'ab')
  addTo(queue, other, 'd')
  addTo(queue, busy, 'XY', true)
  t.same(namesOf(queue), ['X', 'd', 'Y', 'a', 'b'])
  t.end()
})

t.test('FairQueue: an item that is first goes before those of all tenants', (t) => {
  const queue = new FairQueue<Item>()
  const [busy, other, heavy] = [new Tenant('busy'), new Tenant('other'), new Tenant('heavy')]
  addTo(queue, heavy, 'a')
  queue.take(() => true)
  queue.use(heavy, 1_000)
  addTo(queue, busy, 'b')
  addTo(queue, other, 'c')
  addTo(queue, heavy, 'X', true)
  const next = queue.take(
    () => true,
    ({ isContinued }) => isContinued,
  )
  t.equal(next?.name, 'X')
  t.same(namesOf(queue), ['b', 'c'])
  t.end()
})

t.test('FairQueue: skips tenants that may not have more', (t) => {
  const queue = new FairQueue<Item>()
  const [full, other] = [new Tenant('full'), new Tenant()]
  addTo(queue, full, 'ab')
  addTo(queue, other, 'cd')
  t.same(
    namesOf(queue, (tenant) => tenant !== full),
    ['c', 'd'],
  )
  t.same(namesOf(queue), ['a', 'b'])
  t.end()
})

t.test('FairQueue: takeIf takes some, and the others keep their turns', (t) => {
  const queue = new FairQueue<Item>()
  const [app, other] = [new Tenant('app'), new Tenant('other')]
  addTo(queue, app, 'abc')
  addTo(queue, other, 'xyz')
  const taken = queue.takeIf(({ name }) => name === 'a' || name === 'y')
  t.same(taken.map(({ name }) => name).sort(), ['a', 'y'])
  t.equal(queue.length, 4)
  t.same(namesOf(queue), ['b', 'x', 'c', 'z'])
  t.end()
})

/** Takes all items of the tenants that may have more. */
function namesOf(
  queue: FairQueue<Item>,
  mayHaveMore: (tenant: Tenant) => boolean = () => true,
): string[] {
  const names: string[] = []
  for (let item = queue.take(mayHaveMore); item; item = queue.take(mayHaveMore))
    names.push(item.name)
  return names
}

t.test(
  'WriteScheduler: one chunk in a turn of the event loop, and tenants take turns',
  async (t) => {
    const scheduler = new WriteScheduler()
    const [busy, other] = [new Tenant('busy'), new Tenant('other')]
    const order: string[] = []
    const add = (tenant: Tenant, name: string) =>
      void scheduler.next(tenant).then(() => order.push(name))
    for (const name of ['b1', 'b2', 'b3']) add(busy, name)
    add(other, 'o1')
    for (const expected of [['b1'], ['b1', 'o1'], ['b1', 'o1', 'b2'], ['b1', 'o1', 'b2', 'b3']]) {
      await nextImmediate()
      t.same(order, expected)
    }
  },
)

t.test('WriteScheduler: a small response is written at once while none waits', async (t) => {
  const scheduler = new WriteScheduler()
  const [exporting, other] = [new Tenant('exporting'), new Tenant('other')]
  t.equal(scheduler.nextSmall(other, 1_000), undefined)
  const chunk = scheduler.next(exporting)
  const small = scheduler.nextSmall(other, 1_000)
  t.ok(small, 'it takes its turn while a chunk waits')
  await Promise.all([chunk, small])
  t.equal(scheduler.nextSmall(other, 1_000), undefined)
})

t.test(
  'WriteScheduler: an export has half of the turns next to many small responses',
  async (t) => {
    const CHUNKS = 80
    for (const { bytes, most } of [
      // A page of 1,000 rows counts as 5 chunks, so 80 chunks let 16 of them pass, and those at the start.
      { bytes: 4 * 131_072, most: 16 + 10 },
      { bytes: 0, most: CHUNKS + 10 },
    ]) {
      const scheduler = new WriteScheduler()
      const [exporting, busy] = [new Tenant('exporting'), new Tenant('busy')]
      let written = 0
      let isExporting = true
      const clients = Array.from({ length: 10 }, async () => {
        while (isExporting) {
          await nextImmediate()
          await scheduler.nextSmall(busy, bytes)
          written += 1
        }
      })
      // They have written much before the export begins.
      for (let turn = 0; turn < 20; turn += 1) await nextImmediate()
      written = 0
      for (let chunk = 0; chunk < CHUNKS; chunk += 1) await scheduler.next(exporting)
      isExporting = false
      t.ok(written <= most, `${written} small responses of ${bytes} bytes during ${CHUNKS} chunks`)
      await Promise.all(clients)
    }
  },
)

t.test('Rejections: 100 of a tenant do not wait, further ones wait their turn', async (t) => {
  const rejections = new Rejections()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  const free = Array.from({ length: 100 }, () => rejections.take(busy, performance.now()).begins)
  t.equal(rejections.waiting, 0)
  const order: number[] = []
  const waiting = Array.from({ length: 5 }, async (_, n) => {
    t.ok(await rejections.take(busy, performance.now()).begins)
    order.push(n)
  })
  // On a busy machine, 50 ms may have passed: one more then does not wait.
  const { waiting: before } = rejections
  t.ok(before > 0)
  const others = rejections.take(other, performance.now()).begins
  t.equal(rejections.waiting, before, 'another tenant does not wait')
  t.same(new Set(await Promise.all([...free, others])), new Set([true]))
  await Promise.all(waiting)
  t.same(order, [0, 1, 2, 3, 4])
  t.equal(rejections.waiting, 0)
  const long = rejections.take(busy, performance.now() - 5_000).begins
  t.equal(rejections.waiting, 0, 'a request that has taken 5 seconds does not wait')
  t.ok(await long)
})

t.test('Rejections: 2,000 wait, at most three quarters of them of one tenant', async (t) => {
  const rejections = new Rejections()
  const [busy, other] = [new Tenant('busy'), new Tenant('other')]
  const turns: Promise<boolean>[] = []
  const add = (tenant: Tenant, count: number) => {
    // A request waits until it has taken five seconds.
    const startedAt = performance.now() - 4_500
    for (let n = 0; n < count; n += 1) turns.push(rejections.take(tenant, startedAt).begins)
  }
  add(busy, 100 + 1_500)
  t.equal(rejections.waiting, 1_500)
  t.notOk(await rejections.take(busy, performance.now()).begins, 'the connection is closed')
  add(other, 100 + 375)
  t.equal(rejections.waiting, 1_875)
  t.notOk(await rejections.take(other, performance.now()).begins)
  t.same(new Set(await Promise.all(turns)), new Set([true]))
  t.equal(rejections.waiting, 0)
})
