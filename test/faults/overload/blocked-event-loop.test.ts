import t from 'tap'
import { isProblem } from '../../support/problem.ts'
import { until } from '../../support/until.ts'
import { openTestDatabase } from '../support/database.ts'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf((await addSampleData(db, 100)).slice(0, 1))
const blockEventLoop = new URL('../support/processes/block-event-loop.ts', import.meta.url)

t.test('503: the event loop is late; the service stays live and recovers', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    MAX_EVENT_LOOP_DELAY_MS: '100',
    NODE_OPTIONS: `--import=${blockEventLoop.href}`,
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
