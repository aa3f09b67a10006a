import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { advance } from '../../seeds/seed.ts'
import type { Row } from '../../src/http/docs-page/calculator.js'
import { checkHistory } from '../seeds/invariants.ts'
import { openPool } from '../support/database.ts'
import { addresses, lists } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'

const { get, databaseUrl } = await startSeededService(t)
const pool = openPool(t, databaseUrl)
const { token } = DEMO.wealth
const headers = { accept: 'application/json;IEEE754Compatible=true' }

/** Copy of a list, which reads the changes only. */
function copyOf(path: string, { id }: { id: string }) {
  const rows = new Map<string, Row>()
  let cursor = 'start'
  const sync = async () => {
    const changes = { upserts: 0, removed: 0 }
    for (let hasMore = true; hasMore; ) {
      const response = await get(`${path}?limit=5000&since=${cursor}`, { token, headers })
      const page = response.json()
      for (const row of page.items) rows.set(row[id], row)
      for (const removed of page.removed) rows.delete(removed)
      changes.upserts += page.items.length
      changes.removed += page.removed.length
      cursor = page.nextCursor
      hasMore = page.hasMore
      if (!hasMore) t.equal(rows.size, page.totalItems)
    }
    return changes
  }
  return { rows, sync }
}

t.test('400 days of demo advance: a copy of the changes is a possible history', async (t) => {
  const { portfolio, account } = addresses(DEMO.wealth.connections.large.token)
  const transactions = copyOf(portfolio, lists.portfolio)
  const movements = copyOf(account, lists.account)
  const check = async (day: string) => {
    const changes = [await transactions.sync(), await movements.sync()]
    // The newest first, as in the lists.
    const newest = (rows: Map<string, Row>) => [...rows.values()].toReversed()
    const { problems, counts } = checkHistory(newest(transactions.rows), newest(movements.rows))
    t.strictSame(problems.slice(0, 5), [], day)
    return { changes, counts }
  }
  await check('2025-12-31')
  let last = { day: '', counts: {} }
  // Day by day for a quarter, then by weeks.
  const steps = [...Array<number>(65).fill(1), ...Array<number>(67).fill(5)]
  for (const step of steps) {
    const { day } = await advance(pool, step)
    const { changes, counts } = await check(day)
    if (step === 1)
      for (const { upserts, removed } of changes) t.ok(upserts >= 5 && removed === 1, day)
    last = { day, counts }
  }
  t.equal(last.day, '2027-07-14')
  t.comment(JSON.stringify(last))
})
