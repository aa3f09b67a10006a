import t from 'tap'
import { Tenant } from '../../src/limits/tenants.ts'
import { Read } from '../../src/postgres/read.ts'
import { ReadQueue, type ReadQueueOptions } from '../../src/postgres/read-queue.ts'
import { readerOf } from '../support/database.ts'

/** Which read is next, for two sessions of large reads and for eight of small ones. */

const LARGE = { sessions: 2, readsPerSession: 1, countsTime: true, continuedFirstMs: 10_000 }
const SMALL = { sessions: 8, readsPerSession: 2, countsTime: false, continuedFirstMs: 10_000 }
const statement = { name: '', title: '', text: '' }

function add(queue: ReadQueue, tenant: Tenant, isContinued = false): Read {
  const reader = readerOf({ tenant })
  if (isContinued) reader.continue()
  const read = new Read(statement, [], 1_000, reader)
  queue.add(read)
  return read
}

/** Takes reads until none may begin. They are then in flight. */
function startAll(queue: ReadQueue): Read[] {
  const reads: Read[] = []
  for (let read = queue.take(); read; read = queue.take()) {
    read.sentAt = performance.now()
    queue.started(read)
    reads.push(read)
  }
  return reads
}

const countOf = (options: ReadQueueOptions, tenant: Tenant) => {
  const queue = new ReadQueue(options)
  for (let n = 0; n < 20; n += 1) add(queue, tenant)
  return startAll(queue).length
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
    const queue = new ReadQueue(LARGE)
    const [slow, other, blocker] = [new Tenant('slow'), new Tenant('other'), new Tenant('blocker')]
    add(queue, blocker)
    const [blocking] = startAll(queue)
    add(queue, slow)
    const [first] = startAll(queue)
    add(queue, slow)
    queue.ended(first as Read, 1_000)
    const order: string[] = []
    add(queue, other)
    // One session is in use. The other tenant reads 200 ms at a time.
    for (let turn = 0; turn < 6; turn += 1) {
      const [read] = startAll(queue)
      order.push(String(read?.tenant.appId))
      queue.ended(read as Read, 200)
      if (read?.tenant === other) add(queue, other)
    }
    t.same(order, ['other', 'other', 'other', 'other', 'other', 'slow'])
    queue.ended(blocking as Read, 0)
  },
)

t.test('small reads count alike, however long they take', async (t) => {
  const queue = new ReadQueue({ ...SMALL, sessions: 1, readsPerSession: 1 })
  const [slow, other] = [new Tenant('slow'), new Tenant('other')]
  add(queue, slow)
  const [first] = startAll(queue)
  queue.ended(first as Read, 1_000)
  for (let n = 0; n < 2; n += 1) for (const tenant of [other, slow]) add(queue, tenant)
  const order: (string | undefined)[] = []
  for (let turn = 0; turn < 4; turn += 1) {
    const [read] = startAll(queue)
    order.push(read?.tenant.appId)
    queue.ended(read as Read, 1)
  }
  t.same(order, ['other', 'other', 'slow', 'slow'])
})

t.test('block of a response that has begun: after its time, it is first of all', async (t) => {
  const [slow, other] = [new Tenant('slow'), new Tenant('other')]
  const nextAfter = (continuedFirstMs: number) => {
    const queue = new ReadQueue({ ...LARGE, continuedFirstMs })
    add(queue, slow)
    const [first] = startAll(queue)
    queue.ended(first as Read, 1_000)
    add(queue, other)
    add(queue, slow)
    const continued = add(queue, slow, true)
    const next = queue.take()
    return { isContinued: next === continued, tenant: next?.tenant }
  }
  t.same(nextAfter(10_000), { isContinued: false, tenant: other })
  t.same(nextAfter(0), { isContinued: true, tenant: slow })
})
