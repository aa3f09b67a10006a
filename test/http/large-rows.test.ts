import t from 'tap'
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
  t.equal(service.database.state().responseBytes, 0)
})

t.test('503: names a smaller limit if the page exceeds the memory for one app', async (t) => {
  await addPortfolioTransactions(service.db, connection, ...rows.slice(0, 40))
  const rejected = await page(10_000)
  isProblem(t, rejected, 'service_unavailable')
  t.match(rejected.json().detail, 'Request it with a smaller `limit`.')
  t.equal((await page(200)).status, 200)
})
