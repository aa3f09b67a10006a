import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { startProgram } from '../support/processes/program.ts'
import { thisRelease } from '../support/processes/release.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 100))

/** Starts the service in a process that may open this number of files. */
async function startLimited(t: Test, files: number, more: Record<string, string> = {}) {
  const port = await freePort()
  const program = await startProgram(t, {
    command: 'prlimit',
    args: [`--nofile=${files}`, process.execPath, join(thisRelease, 'src/server.js')],
    package: 'util-linux',
    environment: {
      DATABASE_URL: login,
      PORT: String(port),
      METRICS_PORT: '0',
      LOG_LEVEL: 'warn',
      // The clients keep this machine busy.
      ...more,
    },
  })
  return { ...program, port, url: `http://127.0.0.1:${port}` }
}

/** Starts the service, and waits until it responds. */
async function startReady(t: Test, files: number, more: Record<string, string> = {}) {
  const service = await startLimited(t, files, more)
  const live = () => sendAndRead(service.url, { path: '/health/live' })
  await until('the service is live', async () => {
    if (service.process.exitCode !== null) throw new Error(service.output())
    return await live().then(
      ({ status }) => status === 200,
      () => false,
    )
  })
  return service
}

/** Opens connections that send nothing, and waits until the service has accepted or closed them. */
async function openIdle(port: number, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () =>
    connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume(),
  )
  await sleep(1_000)
  return sockets
}

t.test('200: with more idle connections than files', async (t) => {
  const service = await startReady(t, 1024)
  const golden = await recordOk(service.url, requests)
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 2 })
  await sleep(500)
  const sockets = await openIdle(service.port, 1_100)
  t.equal(service.process.exitCode, null)
  assertNoErrors(t, await stop())
  t.match(service.output(), '"maxSockets":913,"msg":"the limit of files allows fewer')
  for (const socket of sockets) socket.destroy()
  t.same(await recordOk(service.url, requests), golden)
})

t.test('200: on open connections while no file can be opened, then on all', async (t) => {
  const service = await startReady(t, 1024)
  const golden = await recordOk(service.url, requests)
  const open = connect(service.port, '127.0.0.1')
  const respond = async (path: string | undefined) => {
    open.write(
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${requests[0]?.token}\r\n\r\n`,
    )
    const [response] = await within(`a response to ${path}`, once(open, 'data'))
    t.match(String(response), /^HTTP\/1\.1 200 /)
  }
  // The kernel connects a client before the service accepts it, which needs a file.
  await respond('/health/live')
  const limitFiles = (files: number) =>
    execFileSync('prlimit', ['--pid', String(service.process.pid), `--nofile=${files}:1024`])

  limitFiles(20)
  const sockets = await openIdle(service.port, 100)
  for (const path of ['/health/live', '/docs', '/docs/static/page.js', requests[0]?.path]) {
    await respond(path)
    await sleep(100)
  }
  t.equal(service.process.exitCode, null)

  limitFiles(1024)
  for (const socket of [...sockets, open]) socket.destroy()
  t.same(await recordOk(service.url, requests), golden)
})

t.test(
  '200: ready on the port of the metrics, with more idle connections than the limit of files allows',
  async (t) => {
    const METRICS_PORT = String(await freePort())
    const service = await startReady(t, 300, { METRICS_PORT })
    const sockets = await openIdle(service.port, 250)
    const ready = (url: string) => sendAndRead(url, { path: '/health/ready' })
    const next = connect(service.port, '127.0.0.1').resume()
    next.on('error', () => {})
    await within('the port of the clients is full', once(next, 'close'))
    for (let n = 0; n < 5; n += 1) {
      t.equal((await ready(`http://127.0.0.1:${METRICS_PORT}`)).status, 200)
    }
    for (const socket of sockets) socket.destroy()
  },
)
