import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import {
  addLargePage,
  addSampleData,
  type GoldenResponse,
  recordOk,
  requestsOf,
  sendAndRead,
} from '../support/golden-responses.ts'
import { assertAllAnswered, readSlowly, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import {
  type ServiceProcess,
  startServiceProcess,
  untilReadyIs,
} from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 500))
// About 25 MB, more than the buffers between two sockets hold.
const largePage = await addLargePage(db, 2_000)

/** Number of connections of the service to PostgreSQL. */
async function connections(): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where usename = ${new URL(login).username}`.execute(db)
  return rows[0]?.n ?? 0
}

const untilDisconnected = () =>
  until('no connection to PostgreSQL is left', async () => (await connections()) === 0)

async function start(t: Test, environment: Record<string, string>): Promise<ServiceProcess> {
  const settings = { DATABASE_URL: login, ...environment }
  const service = await startServiceProcess(t, settings)
  await untilReadyIs(service, 200)
  return service
}

const refusesConnections = ({ port }: ServiceProcess) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', () => resolve(true))
  })

t.test('SIGHUP: the service replaces its connections, and serves', async (t) => {
  const service = await start(t, { LOG_LEVEL: 'info', SHUTDOWN_DELAY_MS: '0' })
  const golden = await recordOk(service.url, requests)
  for (let n = 1; n <= 2; n += 1) {
    service.process.kill('SIGHUP')
    const lines = () => service.output().split('SIGHUP: new connections').length - 1
    await until('the log names SIGHUP', () => lines() === n)
    t.same(await recordOk(service.url, requests), golden)
  }
  t.equal(await service.end('SIGTERM'), 0)
})

t.test('SIGTERM under load: not ready first, and each request gets a response', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '6000', STATEMENT_TIMEOUT_MS: '15000' })
  const golden = await recordOk(service.url, requests)
  const [page] = (await recordOk(service.url, [largePage])) as [GoldenResponse]
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 8 })
  await sleep(300)
  const slow = readSlowly(service.port, page, page.bytes / 12)
  await within('the slow client has the first bytes', slow.begun)

  service.process.kill('SIGTERM')
  await untilReadyIs(service, 503)
  const { status, headers } = await sendAndRead(service.url, golden[0] as GoldenResponse)
  t.equal(status, 200, 'not ready, but it responds')
  t.equal(headers.get('connection'), 'close')
  // Load balancers have noticed after half a second.
  await sleep(500)
  assertAllAnswered(t, await stop())

  await until('new connections are refused', () => refusesConnections(service))
  t.equal(service.process.exitCode, null, 'it still serves the slow client')
  const { digest, bytes } = await within('the slow client has read it all', slow.received)
  t.same({ digest, bytes }, { digest: page.digest, bytes: page.bytes })
  t.equal(await service.ended(), 0)
  await untilDisconnected()
})

t.test('SIGTERM without a request: idle connections do not delay the exit', async (t) => {
  const service = await start(t, {
    SHUTDOWN_DELAY_MS: '0',
    // Less than the time of a request: waiting for the unfinished one would give exit code 1.
    STATEMENT_TIMEOUT_MS: '2000',
  })
  const idle = connect(service.port, '127.0.0.1')
  const unfinished = connect(service.port, '127.0.0.1')
  unfinished.write('GET / HTTP/1.1\r\n')
  for (const socket of [idle, unfinished]) socket.on('error', () => {}).resume()
  await within('the client has connected', once(unfinished, 'connect'))
  await recordOk(service.url, requests.slice(0, 1))
  t.equal(await service.end('SIGTERM'), 0)
  await untilDisconnected()
})

t.test('SIGTERM: a connection opened just before the end gets its response', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '300' })
  service.process.kill('SIGTERM')
  await untilReadyIs(service, 503)
  const socket = connect(service.port, '127.0.0.1')
  const received = text(socket)
  await once(socket, 'connect')
  await until('new connections are refused', () => refusesConnections(service))
  socket.write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n')
  t.match(await received, /^HTTP\/1.1 200 /)
  t.equal(await service.ended(), 0)
})

t.test('Exit code 1: a client stalls until the time of the shutdown is over', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '0' })
  const stalled = readSlowly(service.port, largePage, 0)
  await within('the client has the first bytes', stalled.begun)
  t.equal(await service.end('SIGTERM'), 1, 'one response was not sent completely')
  stalled.disconnect()
  t.match(service.output(), /"level":50,.*"msg":"killed by timeout/)
  await untilDisconnected()
})

t.test('Exit code 1: an unfinished response ends with a reset, also over HTTP/1.0', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '600000' })
  const client = connect(service.port, '127.0.0.1').pause()
  client.write(`GET ${largePage.path} HTTP/1.0\r\nAuthorization: Bearer ${largePage.token}\r\n\r\n`)
  await within('the client has the first bytes', once(client, 'readable'))
  service.process.kill('SIGTERM')
  await untilReadyIs(service, 503)
  t.equal(await service.end('SIGTERM'), 1)
  const end = new Promise((resolve) => {
    client.on('error', resolve).on('end', () => resolve('the end of a complete response'))
  })
  client.resume()
  t.match(await within('the connection ends', end), { code: 'ECONNRESET' })
})

t.test('Exit code 1: a second signal ends the process immediately', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '600000' })
  service.process.kill('SIGTERM')
  await untilReadyIs(service, 503)
  t.equal(await service.end('SIGTERM'), 1)
  t.match(service.output(), /"level":50,.*"msg":"second SIGTERM, exiting"/)
  await untilDisconnected()
})

t.test(
  'Exit code 1: an uncaught error is in the log, and connections to PostgreSQL end',
  async (t) => {
    const throwing = `process.once('SIGUSR2',()=>{throw(new(Error)('of-the-test'))})`
    const NODE_OPTIONS = `--import=data:text/javascript,${throwing}`
    const service = await start(t, { SHUTDOWN_DELAY_MS: '60000', NODE_OPTIONS })
    t.equal(await service.end('SIGUSR2'), 1)
    const line = service
      .output()
      .split('\n')
      .find((line) => line.includes('closing after a failure'))
    t.match(JSON.parse(String(line)), { level: 60, err: { message: 'of-the-test', stack: /at / } })
    await untilDisconnected()
  },
)

t.test('SIGINT: the service does not wait for load balancers', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '600000' })
  t.equal(await service.end('SIGINT'), 0)
  await untilDisconnected()
})
