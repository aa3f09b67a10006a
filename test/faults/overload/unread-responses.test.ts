import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTestDatabase } from '../support/database.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 100))
const portfolio = requests[0]?.path

const CONNECTIONS = 10
const PATHS = [
  '/docs',
  '/docs/static/swagger-ui-bundle.js',
  '/openapi.json',
  '/health/live',
  '/health/ready',
  '/%zz',
  `${portfolio}`,
]

for (const path of PATHS) {
  t.test(`200: while clients pipeline ${path} and read nothing`, async (t) => {
    const service = await startServiceProcess(t, {
      DATABASE_URL: login,
      MAX_EVENT_LOOP_DELAY_MS: '0',
      LOG_LEVEL: 'error',
    })
    const golden = await recordOk(service.url, requests)
    const before = await peakMemory(service)
    const request = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
    const bytes = request.repeat(Math.ceil(65_536 / request.length))
    const sockets = Array.from({ length: CONNECTIONS }, () => {
      const socket = connect(service.port, '127.0.0.1').on('error', () => {})
      socket.pause()
      const write = () => socket.write(bytes, (error) => error ?? setImmediate(write))
      socket.once('connect', write)
      return socket
    })
    await sleep(500)
    const stop = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
    await sleep(2_000)
    const report = await stop()
    const grown = (await peakMemory(service)) - before
    t.comment(
      `sent ${report.sent}, refused ${report.unavailable}, memory +${grown} MB, exit code ${service.process.exitCode}`,
    )
    assertNoErrors(t, report)
    t.equal(report.unavailable, 0)
    t.ok(grown < 150, `${grown} MB`)
    t.equal(service.process.exitCode, null)
    for (const socket of sockets) socket.destroy()
  })
}
