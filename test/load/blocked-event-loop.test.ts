import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { isProblem } from '../support/problem.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf((await addSampleData(db, 100)).slice(0, 1))
const blockEventLoop = new URL('../support/processes/block-event-loop.ts', import.meta.url)

/* The service measures twice a second: a turn of the event loop is shorter or longer than that. */
for (const turnMs of [300, 700])
  t.test(`503: each turn takes ${turnMs} ms; the service stays live and recovers`, async (t) => {
    const service = await startServiceProcess(t, {
      DATABASE_URL: login,
      MAX_EVENT_LOOP_DELAY_MS: '100',
      NODE_OPTIONS: `--import=${blockEventLoop.href}`,
      TURN_MS: String(turnMs),
    })
    const [first = { path: '/' }] = requests
    const responds = async () => (await sendAndRead(service.url, first)).status === 200
    await until('the service has started', responds)
    const golden = await recordOk(service.url, requests)

    service.process.kill('SIGWINCH')
    await until('the service has noticed', async () => !(await responds()))
    for (const request of requests) {
      const response = await sendAndRead(service.url, request)
      const { detail } = isProblem(t, response, 'service_unavailable')
      t.equal(detail, 'The service is overloaded. Try again soon.')
      t.match(response.headers.get('retry-after'), /^[1-9]\d*$/)
    }
    t.equal((await sendAndRead(service.url, { path: '/health/live' })).status, 200)

    service.process.kill('SIGWINCH')
    await until('the service responds again', responds)
    t.same(await recordOk(service.url, requests), golden)
  })

t.test('200: the interval of the measurement is no delay', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    // Between one and two intervals of 10 ms.
    MAX_EVENT_LOOP_DELAY_MS: '19',
  })
  // The service judges after two samples of 500 ms.
  await sleep(1_500)
  const [first = { path: '/' }] = requests
  const responds = async () => (await sendAndRead(service.url, first)).status === 200
  await until('the service responds', responds)
})

t.test('200: after a single stall of the process', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    MAX_EVENT_LOOP_DELAY_MS: '100',
  })
  const golden = await recordOk(service.url, requests)
  for (const stall of [1, 2]) {
    // The delays of the start are in earlier samples.
    await sleep(1_500)
    service.process.kill('SIGSTOP')
    // Longer than the limit multiplied by the delays of one sample.
    await sleep(5_500)
    service.process.kill('SIGCONT')
    const stop = startGoldenLoad(t, { url: service.url, golden, clients: 1 })
    await sleep(700)
    const report = await stop()
    assertNoErrors(t, report)
    t.equal(report.unavailable, 0, `stall ${stall}: ${report.sent} sent`)
  }
})
