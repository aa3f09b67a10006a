import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { addSampleData, recordOk, requestsOf, send } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 500))
const environment = { DATABASE_URL: login }

const LOAD_MS = 2_000
const MAX_REQUESTS = 20

t.test(
  '503: requests exceed the capacity; the others get 200 and the service is ready',
  async (t) => {
    const service = await startServiceProcess(t, {
      ...environment,
      DATABASE_POOL_SIZE: '2',
      MAX_REQUESTS: String(MAX_REQUESTS),
    })
    const golden = await recordOk(service.url, requests)
    const loadWith = async (clients: number) => {
      const statuses = new Set<number>()
      let mostWaiting = 0
      const stop = startGoldenLoad(t, { url: service.url, golden, clients, pauseMs: 0 })
      for (const end = performance.now() + LOAD_MS; performance.now() < end; await sleep(200)) {
        const response = await send(service.url, { path: '/health/ready' })
        const { waitingRequests = 0 } = (await response.json()) as { waitingRequests?: number }
        mostWaiting = Math.max(mostWaiting, waitingRequests)
        statuses.add(response.status)
      }
      const report = await stop()
      assertNoErrors(t, report, `, with ${clients} clients`)
      t.same([...statuses], [200], 'ready')
      t.ok(mostWaiting <= MAX_REQUESTS, `${mostWaiting} waiting requests`)
      const [okMs, unavailableMs] = [report.okMs, report.unavailableMs].map(Math.round)
      t.comment(`mean duration with ${clients} clients: 200 ${okMs} ms, 503 ${unavailableMs} ms`)
      return report
    }
    const few = await loadWith(4)
    // A busy machine may fail to open a connection to PostgreSQL within two seconds.
    t.ok(
      few.unavailable <= few.sent / 10,
      `${few.unavailable} of ${few.sent} got 503, within the capacity`,
    )
    const many = await loadWith(100)
    t.ok(many.unavailable > 0)
    t.match(service.output(), 'Too many requests are in flight')
    t.equal(service.process.exitCode, null)
  },
)
