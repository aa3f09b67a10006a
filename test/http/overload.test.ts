import t from 'tap'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import { contextOf } from '../support/database.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addEqualRows, addPortfolioTransactions, type Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const LIMIT = 4

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
    await until('no room is left', () => service.limits.requests === LIMIT)
    const { detail } = isProblem(t, await send(callers[0] as Caller), 'service_unavailable')
    t.equal(detail, 'Too many requests are in flight. Try again soon.')
    t.equal((await service.get('/health/live')).status, 200)
    t.equal((await service.get('/openapi.json')).status, 200, 'documents use no room')
  })
  for (const { status } of await Promise.all(responses)) t.equal(status, 200)
  for (let i = 0; i <= LIMIT; i += 1) t.equal((await anonymous()).status, 401)
})

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
  isProblem(t, rejected, 'response_too_large')
  t.notOk(rejected.headers.has('retry-after'))
  t.equal((await page(200)).status, 200)
})

t.test('503: only the others leave too little memory', async (t) => {
  const { limits } = service
  const other = contextOf({ limits })
  t.ok(other.memory.take(8 * 2 ** 20))
  isProblem(t, await page(ROWS), 'service_unavailable')
  t.equal((await page(50)).status, 200)
  other.end(false)
  t.equal((await page(ROWS)).status, 200)

  const all = contextOf({ limits })
  t.ok(all.memory.take(limits.memory.limit))
  isProblem(t, await page(50), 'service_unavailable')
  all.end(false)
})
