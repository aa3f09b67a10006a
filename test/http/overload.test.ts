import t from 'tap'
import { problemExamples } from '../../src/http/openapi/examples.ts'
import { Limits } from '../../src/limits/limits.ts'
import { Database } from '../../src/postgres/database.ts'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import { accountOf, createDatabase, readerOf } from '../support/database.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addEqualRows, addPortfolioTransactions, type Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const LIMIT = 4

const ROWS = 280
/** The longest description: 40,000 bytes. */
const description = '😀'.repeat(10_000)

// One app has at most 12 MiB of these 16.
const service = await startService(t, { environment: { ANSWER_MEMORY_MB: '16' } })
const { token, connection } = await addCaller(service.db)
const add = (count: number) =>
  addEqualRows(service.db, 'portfolio', connection, { count, description })
await add(ROWS)

const page = (limit: number) => service.get(`${connection.portfolio}?limit=${limit}`, { token })

t.test('503: MAX_REQUESTS are in flight; later requests get a response again', async (t) => {
  const environment = { STATEMENT_TIMEOUT_MS: '60000', MAX_REQUESTS: String(LIMIT) }
  const service = await startService(t, { environment })
  // One app alone may not have all requests in flight.
  const callers = await Promise.all(Array.from({ length: LIMIT }, () => addCaller(service.db)))
  for (const { connection } of callers) await addPortfolioTransactions(service.db, connection, {})
  const send = ({ token, connection }: Caller) => service.get(connection.portfolio, { token })
  // Unknown callers may not have all requests in flight either.
  for (const caller of callers) t.equal((await send(caller)).status, 200)
  const path = String(callers[0]?.connection.portfolio)
  const anonymous = () => service.get(path)
  const responses: Promise<{ status: number }>[] = []
  await withBlockedStatements(t, service.db, async () => {
    for (const [index, caller] of callers.entries()) {
      t.equal((await anonymous()).status, 401, `room with ${index} in flight`)
      responses.push(send(caller))
    }
    await until('no room is left', () => service.limits.requests.inFlight === LIMIT)
    const { detail } = isProblem(t, await send(callers[0] as Caller), 'service_unavailable')
    t.equal(detail, 'Too many requests are in flight. Try again soon.')
    t.equal((await service.get('/health/live')).status, 200)
    t.equal((await service.get('/openapi.json')).status, 200, 'documents use no room')
  })
  for (const { status } of await Promise.all(responses)) t.equal(status, 200)
  for (let i = 0; i <= LIMIT; i += 1) t.equal((await anonymous()).status, 401)
})

t.test('200: rows of 40 KB fill nine tenths of the memory for one app', async (t) => {
  // Each attempt gives back its memory.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const response = await page(10_000)
    t.equal(response.status, 200)
    t.equal(response.json().items.length, ROWS)
  }
  t.equal(service.limits.memory.used, 0)
})

t.test('400: the page exceeds the memory for one app, whatever the others have', async (t) => {
  await add(40)
  const rejected = await page(10_000)
  const { requestId, ...body } = isProblem(t, rejected, 'response_too_large')
  const example = problemExamples(400).response_too_large?.value
  t.same({ ...body, requestId }, { ...example, requestId }, 'the example of the document')
  t.notOk(rejected.headers.has('retry-after'))
  t.equal((await page(200)).status, 200)
})

t.test('503: only the others leave too little memory', async (t) => {
  const { limits } = service
  const other = accountOf(limits)
  other.take(8 * 2 ** 20)
  isProblem(t, await page(ROWS), 'service_unavailable')
  t.equal((await page(50)).status, 200)
  other.close(false)
  t.equal((await page(ROWS)).status, 200)

  const all = accountOf(limits)
  all.take(limits.memory.limit)
  isProblem(t, await page(50), 'service_unavailable')
  all.close(false)
})

const BYTES = 8 * 2 ** 20
const options = { size: 1, statementTimeoutMs: 5_000, pooler: false }
const read = { name: 'rows', title: 'rows', text: 'select generate_series(1, $1::int)' }

t.test('memory of a read: free after a failure, and if the client disconnects', async (t) => {
  const { url } = await createDatabase(t)
  const db = new Database({ url, ...options })
  t.teardown(() => db.close())
  const limits = new Limits(1, BYTES)
  const used = () => limits.memory.used
  const few = readerOf({ rows: 5_000, limits })
  await db.read(read, ['3'], few)
  t.ok(used() > 0 && used() < 100_000, 'only the rows are counted')
  few.memory.close(true)
  t.equal(used(), 0)

  const failing = readerOf({ rows: 5_000, limits })
  await t.rejects(db.read(read, ['none'], failing), { code: '22P02' })
  t.equal(used(), 0)
  failing.memory.close(true)

  const late = readerOf({ rows: 5_000, limits, msAgo: options.statementTimeoutMs + 1 })
  await t.rejects(db.read(read, ['3'], late), { name: 'Unavailable' })
  t.equal(used(), 0)
  late.memory.close(true)

  const gone = readerOf({ rows: 5_000, limits })
  const unread = db.read(read, ['3'], gone).catch(() => {})
  gone.memory.close(false)
  t.equal(used(), 0, 'at once, if the client disconnects during the read')
  await unread
  t.equal(used(), 0)
})

t.test('memory of a response: reused only if the whole response was sent', (t) => {
  const limits = new Limits(1, BYTES)
  const { memory } = limits
  const blockOf = (sent: boolean) => {
    const account = accountOf(limits)
    const { buffer } = account.takeForBody(100_000)
    account.close(sent)
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
  const limits = new Limits(1, BYTES)
  const { memory } = limits
  const account = accountOf(limits)
  const block = account.take(100_000)
  t.ok(memory.used >= 100_000)
  account.giveBack(block)
  t.equal(memory.used, 0)
  account.close(true)
  t.equal(memory.used, 0)
  t.end()
})

t.test('memory of JSON: counted until the response ends', (t) => {
  const limits = new Limits(1, BYTES)
  const account = accountOf(limits)
  const { length } = account.take(100_000)
  t.ok(length >= 100_000)
  t.equal(limits.memory.used, length)
  account.count(10_000)
  t.equal(limits.memory.used, length + 10_000, 'stored elsewhere, such as escaped text')
  account.close(true)
  t.equal(limits.memory.used, 0)
  t.end()
})

t.test('memory of a departed client: nothing more is counted', (t) => {
  const limits = new Limits(1, BYTES)
  const account = accountOf(limits)
  account.take(100_000)
  account.close(false)
  t.ok(account.refusal(100_000), 'no room for rows')
  t.equal(limits.memory.used, 0)
  account.take(100_000)
  t.equal(limits.memory.used, 0)
  account.count(100_000)
  t.equal(limits.memory.used, 0)
  t.end()
})
