import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { until } from '../../support/until.ts'
import { openTestDatabase } from '../support/database.ts'
import { recordDemo, seedDemo, sendAndRead } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { startInstance } from '../support/processes/instances.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { type StartProxy, startHaproxy, startNginx } from '../support/servers/proxies.ts'

const { url: databaseUrl, login } = await openTestDatabase(t)
await seedDemo(databaseUrl)
const golden = await recordDemo(t, databaseUrl)
const [request = { path: '/' }] = golden
const options = { environment: { DATABASE_URL: login } }

const proxies: Record<string, StartProxy> = { HAProxy: startHaproxy, nginx: startNginx }
for (const [name, startProxy] of Object.entries(proxies)) {
  t.test(`200: two instances behind ${name} restart, and no request fails`, async (t) => {
    const instances = [await startInstance(t, options), await startInstance(t, options)] as const
    const { url, log } = await startProxy(t, [instances[0].port, instances[1].port])
    const stop = startGoldenLoad(t, { url, golden, clients: 8, pauseMs: 20 })
    for (const instance of instances) {
      await sleep(500)
      await instance.restart()
    }
    // The proxy uses the second instance again after its next health check.
    await sleep(2_000)
    assertAllAnswered(t, await stop())
    t.notOk(/idq_demo|DEMO[A-Z]+1/.test(log()), 'no token in the log of the proxy')
  })
}

/** Asserts that a response of HAProxy itself has the standard error body. */
function assertProblem(t: Test, response: Awaited<ReturnType<typeof sendAndRead>>, code: string) {
  const { status, headers, text } = response
  const requestId = String(headers.get('x-request-id'))
  t.match(JSON.parse(text), { status, code, requestId })
  t.match(requestId, /^[0-9a-f-]{36}$/)
  t.equal(headers.get('retry-after'), status === 503 ? '1' : null)
  t.match(headers.get('content-type'), 'application/json')
}

t.test('503: HAProxy has no ready instance and sends the standard error body', async (t) => {
  const instance = await startInstance(t, options)
  const { url, log } = await startHaproxy(t, [instance.port, instance.port])
  await instance.end()
  const ask = () => sendAndRead(url, request)
  await until('HAProxy has no instance', async () => (await ask()).status === 503)
  assertProblem(t, await ask(), 'service_unavailable')
  t.match(log(), ' 503 ')
  t.notOk(log().includes('/connections/'), 'no connection token in the log of HAProxy')
})

t.test('503 and 404: an instance hangs, and HAProxy sends the standard error body', async (t) => {
  const { port, process } = await startServiceProcess(t, options.environment)
  const { url } = await startHaproxy(t, [port, port])
  assertProblem(t, await sendAndRead(url, { path: '/health/live' }), 'route_not_found')
  process.kill('SIGSTOP')
  // The first requests wait for the limit of HAProxy, until its health checks fail.
  const response = await sendAndRead(url, request)
  t.equal(response.status, 503)
  assertProblem(t, response, 'service_unavailable')
})

t.test('Connections beyond 200 of one address: HAProxy closes them', async (t) => {
  const { port } = await startServiceProcess(t, options.environment)
  const { url } = await startHaproxy(t, [port, port])
  let closed = 0
  const sockets = Array.from({ length: 300 }, () =>
    connect(Number(new URL(url).port), '127.0.0.1')
      .on('error', () => {})
      .on('close', () => {
        closed += 1
      })
      .resume(),
  )
  t.teardown(() => sockets.forEach((socket) => void socket.destroy()))
  await until('HAProxy closes some', () => closed >= 100)
  await sleep(500)
  // The requests before have connections, too.
  t.ok(closed < 150, `${closed} of ${sockets.length} connections are closed`)
  for (const socket of sockets) socket.destroy()
  const isServed = () =>
    sendAndRead(url, request).then(
      ({ status }) => status === 200,
      () => false,
    )
  await until('the address is served again', isServed)
})
