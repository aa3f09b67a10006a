import t from 'tap'
import { Tenant } from '../../src/limits/tenants.ts'
import { Read } from '../../src/postgres/read.ts'
import { Turns, type TurnsOptions } from '../../src/postgres/turns.ts'
import { readerOf } from '../support/database.ts'

/** Which read is next, for two sessions of large reads and for eight of small ones. */

const LARGE = { sessions: 2, readsPerSession: 1, countsTime: true, continuedFirstMs: 10_000 }
const SMALL = { sessions: 8, readsPerSession: 2, countsTime: false, continuedFirstMs: 10_000 }
const statement = { name: '', title: '', text: '' }

function add(turns: Turns, tenant: Tenant, isContinued = false): Read {
  const reader = readerOf({ tenant })
  if (isContinued) reader.continue()
  const read = new Read(statement, [], 1_000, reader)
  turns.add(read)
  return read
}

/** Takes reads until none may have a turn. They are then in flight. */
function startAll(turns: Turns): Read[] {
  const reads: Read[] = []
  for (let read = turns.take(); read; read = turns.take()) {
    read.sentAt = performance.now()
    turns.started(read)
    reads.push(read)
  }
  return reads
}

const countOf = (options: TurnsOptions, tenant: Tenant) => {
  const turns = new Turns(options)
  for (let n = 0; n < 20; n += 1) add(turns, tenant)
  return startAll(turns).length
}

t.test('reads in flight of one tenant: one of two large ones, 12 of 16 small ones', async (t) => {
  t.equal(countOf(LARGE, new Tenant('app')), 1)
  t.equal(countOf(SMALL, new Tenant('app')), 12)
})

t.test(
  'reads in flight of callers whose app is unknown: one large one, four small ones',
  async (t) => {
    t.equal(countOf(LARGE, new Tenant()), 1)
    t.equal(countOf(SMALL, new Tenant()), 4)
    t.equal(countOf({ ...SMALL, sessions: 1 }, new Tenant()), 1)
  },
)

t.test(
  'one large read of a second: its tenant waits until the others have used as much',
  async (t) => {
    const turns = new Turns(LARGE)
    const [slow, other, blocker] = [new Tenant('slow'), new Tenant('other'), new Tenant('blocker')]
    add(turns, blocker)
    const [blocking] = startAll(turns)
    add(turns, slow)
    const [first] = startAll(turns)
    add(turns, slow)
    turns.ended(first as Read, 1_000)
    const order: string[] = []
    add(turns, other)
    // One session is in use. The other tenant reads 200 ms at a time.
    for (let turn = 0; turn < 6; turn += 1) {
      const [read] = startAll(turns)
      order.push(String(read?.tenant.appId))
      turns.ended(read as Read, 200)
      if (read?.tenant === other) add(turns, other)
    }
    t.same(order, ['other', 'other', 'other', 'other', 'other', 'slow'])
    turns.ended(blocking as Read, 0)
  },
)

t.test('small reads count alike, however long they take', async (t) => {
  const turns = new Turns({ ...SMALL, sessions: 1, readsPerSession: 1 })
  const [slow, other] = [new Tenant('slow'), new Tenant('other')]
  add(turns, slow)
  const [first] = startAll(turns)
  turns.ended(first as Read, 1_000)
  for (let n = 0; n < 2; n += 1) for (const tenant of [other, slow]) add(turns, tenant)
  const order: (string | undefined)[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const [read] = startAll(turns)
    order.push(read?.tenant.appId)
    turns.ended(read as Read, 1)
  }
  t.same(order, ['other', 'other', 'slow', 'slow'])
})

t.test('block of a response that has begun: after its time, it is first of all', async (t) => {
  const [slow, other] = [new Tenant('slow'), new Tenant('other')]
  const nextAfter = (continuedFirstMs: number) => {
    const turns = new Turns({ ...LARGE, continuedFirstMs })
    add(turns, slow)
    const [first] = startAll(turns)
    turns.ended(first as Read, 1_000)
    add(turns, other)
    add(turns, slow)
    const continued = add(turns, slow, true)
    const next = turns.take()
    return { isContinued: next === continued, tenant: next?.tenant }
  }
  t.same(nextAfter(10_000), { isContinued: false, tenant: other })
  t.same(nextAfter(0), { isContinued: true, tenant: slow })
})
