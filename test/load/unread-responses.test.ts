import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 100))
const portfolio = requests[0]?.path

/** Number of connections, and of requests that each sends at once. */
const MANY = { connections: 10, pipelined: 1_000 }
/** One request on each connection, as many as the service accepts. */
const FEW = { connections: 400, pipelined: 1 }
const CASES = [
  { path: '/docs', ...MANY },
  { path: '/docs', ...FEW },
  { path: '/openapi.json', ...MANY },
  { path: '/health/live', ...MANY },
  { path: '/health/ready', ...MANY },
  { path: '/%zz', ...MANY },
  { path: `${portfolio}`, ...MANY },
]

// The peak is that of the process, so each case also includes the ones before it.
const service = await startServiceProcess(t, {
  DATABASE_URL: login,
  LOG_LEVEL: 'error',
})
const golden = await recordOk(service.url, requests)
const before = await peakMemory(service)

for (const { path, connections, pipelined } of CASES) {
  t.test(
    `200: while ${connections} clients send ${pipelined} ${path} and read nothing`,
    async (t) => {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(pipelined)
      const sockets = Array.from({ length: connections }, () => {
        const socket = connect(service.port, '127.0.0.1').on('error', () => {})
        socket.pause().write(bytes)
        return socket
      })
      await sleep(500)
      const stop = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
      await sleep(1_000)
      const report = await stop()
      const grown = (await peakMemory(service)) - before
      assertNoErrors(t, report, `, memory +${grown} MB`)
      t.equal(report.unavailable, 0)
      t.ok(grown < 150, `${grown} MB`)
      t.equal(service.process.exitCode, null)
      for (const socket of sockets) socket.destroy()
    },
  )
}
