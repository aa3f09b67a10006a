import t from 'tap'
import { contextOf } from '../support/database.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const ROWS = 210
/** The longest description: 40,000 bytes. */
const description = '😀'.repeat(10_000)

// Large requests of one app have 9 MiB of these 16.
const service = await startService(t, { environment: { ANSWER_MEMORY_MB: '16' } })
const { token, connection } = await addCaller(service.db)
const rows = Array.from({ length: ROWS }, () => ({ description }))
await addPortfolioTransactions(service.db, connection, ...rows)

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
  await addPortfolioTransactions(service.db, connection, ...rows.slice(0, 40))
  const rejected = await page(10_000)
  isProblem(t, rejected, 'response_too_large')
  t.notOk(rejected.headers.has('retry-after'))
  t.equal((await page(200)).status, 200)
})

t.test('503: names a smaller limit if only others leave too little memory', async (t) => {
  const { limits } = service
  const other = contextOf({ limits })
  t.ok(other.memory.take(8 * 2 ** 20))
  // Alone, the app has 12 MiB for such a page.
  const rejected = await page(ROWS)
  isProblem(t, rejected, 'service_unavailable')
  t.match(rejected.json().detail, 'Request it with a smaller `limit`.')
  t.equal((await page(50)).status, 200)
  other.end(false)
  t.equal((await page(ROWS)).status, 200)

  const all = contextOf({ limits })
  t.ok(all.memory.take(limits.memory.limit))
  const full = await page(50)
  isProblem(t, full, 'service_unavailable')
  t.notMatch(full.json().detail, 'limit', 'no memory is free')
  all.end(false)
})
