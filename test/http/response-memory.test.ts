import t from 'tap'
import { Limits } from '../../src/limits/context.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { contextOf, createDatabase } from '../support/database.ts'

const LIMIT = 8 * 2 ** 20
const ROWS = 5_000
const options = { size: 1, waitMs: 3_000, statementTimeoutMs: 5_000, pooler: false }
const rows = { name: 'rows', title: 'rows', text: 'select generate_series(1, $1::int)' }

t.test('memory of a read: free after a failure, and if the client disconnects', async (t) => {
  const { url } = await createDatabase(t)
  const db = openDatabase({ url, ...options })
  t.teardown(() => db.close())
  const limits = new Limits(1, LIMIT)
  const used = () => limits.memory.used
  const few = contextOf({ rows: ROWS, limits })
  await db.read(rows, ['3'], few)
  t.ok(used() > 0 && used() < 100_000, 'only the rows are counted')
  few.end(true)
  t.equal(used(), 0)

  const failing = contextOf({ rows: ROWS, limits })
  await t.rejects(db.read(rows, ['none'], failing), { code: '22P02' })
  t.equal(used(), 0)
  failing.end(true)

  const late = contextOf({ rows: ROWS, limits, msAgo: options.waitMs + 1 })
  await t.rejects(db.read(rows, ['3'], late), { name: 'Unavailable' })
  t.equal(used(), 0)
  late.end(true)

  const gone = contextOf({ rows: ROWS, limits })
  const unread = db.read(rows, ['3'], gone).catch(() => {})
  gone.end(false)
  t.equal(used(), 0, 'at once, if the client disconnects during the read')
  await unread
  t.equal(used(), 0)
})

t.test('memory of a response: reused only if the whole response was sent', (t) => {
  const limits = new Limits(1, LIMIT)
  const { memory } = limits
  const blockOf = (sent: boolean) => {
    const context = contextOf({ limits })
    const { buffer } = context.memory.takeForJson(100_000)
    context.end(sent)
    return buffer
  }
  const unsent = blockOf(false)
  const sent = blockOf(true)
  t.not(sent, unsent)
  t.equal(blockOf(true), sent)
  t.equal(memory.used, 0)
  t.end()
})

t.test('memory of rows: free when they are written', (t) => {
  const limits = new Limits(1, LIMIT)
  const { memory } = limits
  const context = contextOf({ limits })
  const block = context.memory.take(100_000)
  t.ok(block && memory.used >= 100_000)
  if (block) context.memory.giveBack(block)
  t.equal(memory.used, 0)
  context.end(true)
  t.equal(memory.used, 0)
  t.end()
})

t.test('memory of JSON: counted until the response ends', (t) => {
  const limits = new Limits(1, LIMIT)
  const context = contextOf({ limits })
  const { length } = context.memory.takeForJson(100_000)
  t.ok(length >= 100_000)
  t.equal(limits.memory.used, length)
  context.memory.count(10_000)
  t.equal(limits.memory.used, length + 10_000, 'stored elsewhere, such as escaped text')
  context.end(true)
  t.equal(limits.memory.used, 0)
  t.end()
})

t.test('memory of a departed client: nothing more is counted', (t) => {
  const limits = new Limits(1, LIMIT)
  const context = contextOf({ limits })
  context.memory.takeForJson(100_000)
  context.end(false)
  t.equal(context.memory.take(100_000), undefined, 'no room for rows')
  t.equal(limits.memory.used, 0)
  context.memory.takeForJson(100_000)
  t.equal(limits.memory.used, 0)
  context.memory.count(100_000)
  t.equal(limits.memory.used, 0)
  t.end()
})
