import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import {
  addSampleData,
  check,
  recordOk,
  requestsOf,
  send,
  sendAndRead,
} from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { isProblem } from '../support/problem.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 500))
const environment = { DATABASE_URL: login }

const LOAD_MS = 4_000
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
      few.unavailable <= few.sent / 100,
      `${few.unavailable} of ${few.sent} got 503, within the capacity`,
    )
    const many = await loadWith(100)
    t.ok(many.unavailable > 0)
    t.match(service.output(), 'Too many requests are in flight')
    t.equal(service.process.exitCode, null)
  },
)

t.test('503: a request beyond MAX_REQUESTS gets 503 before the others end', async (t) => {
  const service = await startServiceProcess(t, {
    ...environment,
    STATEMENT_TIMEOUT_MS: '60000',
    MAX_REQUESTS: '5',
  })
  // One app alone may not have all requests in flight.
  const callers = await Promise.all(Array.from({ length: 5 }, () => addCaller(db)))
  for (const { connection } of callers) await addPortfolioTransactions(db, connection, {})
  const own = callers.map(({ token, connection }) => ({ path: connection.portfolio, token }))
  const golden = await recordOk(service.url, own)
  let ended = 0
  let earlier: Promise<string>[] = []
  await withBlockedStatements(t, db, async () => {
    earlier = golden.map((each) =>
      check(service.url, each, { limitMs: 90_000 }).finally(() => {
        ended += 1
      }),
    )
    // A request without a token gets 401 as long as there is room.
    const next = () => sendAndRead(service.url, { path: String(own[0]?.path) })
    await until('the sixth request gets 503', async () => (await next()).status === 503)
    isProblem(t, await next(), 'service_unavailable')
    t.equal(ended, 0, 'the earlier requests are still in progress')
  })
  const results = within('the earlier requests have ended', Promise.all(earlier))
  t.same(await results, Array(5).fill('ok'))
})
