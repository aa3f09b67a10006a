import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, get } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isNightly } from '../nightly.ts'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { recordDemo, sendAndRead } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { type Instance, startInstance } from '../support/processes/instances.ts'
import { healthPortOf, startServiceProcess } from '../support/processes/service-process.ts'
import { runShell } from '../support/processes/shell.ts'
import { openSeededDatabase } from '../support/seeded-service.ts'
import {
  type StartProxy,
  startHaproxy,
  startNginx,
  startPlainHaproxy,
} from '../support/servers/proxies.ts'
import { until } from '../support/until.ts'

const { url: databaseUrl, login } = await openSeededDatabase(t)
const golden = await recordDemo(t, databaseUrl)
const [request = { path: '/' }] = golden
const options = { environment: { DATABASE_URL: login } }
/** Behind the proxy of each test that needs no other state of the service. */
const service = await startServiceProcess(t, options.environment)

const proxies: Record<string, StartProxy> = { HAProxy: startHaproxy, nginx: startNginx }
for (const [name, startProxy] of Object.entries(proxies)) {
  t.test(`200: two instances behind ${name} restart, and no request fails`, async (t) => {
    const instances = [await startInstance(t, options), await startInstance(t, options)] as const
    const { url, log } = await startProxy(t, [instances[0].port, instances[1].port])
    // Below the limits of the proxy: 5,000 requests and 1,000 new connections in ten seconds.
    const kept = startGoldenLoad(t, { url, golden, clients: 8, pauseMs: isNightly ? 20 : 50 })
    const load = { url, golden, clients: 2, pauseMs: 50, newConnections: true }
    const opened = startGoldenLoad(t, load)
    await sleep(500)
    await restartAll(t, instances)
    // The proxy uses the second instance again after its next health check.
    await sleep(2_000)
    assertAllAnswered(t, await kept())
    assertAllAnswered(t, await opened())
    t.match(log(), / GET 200 /, 'each request has a line')
    t.notOk(/idq_demo|DEMO[A-Z]+1/.test(log()), 'no token in the log of the proxy')
  })
}

/** Runs the documented commands of a rolling restart. In place of systemctl, they ask this process. */
async function restartAll(t: Test, instances: readonly [Instance, Instance]): Promise<void> {
  const starts = new Map<number, Promise<void>>()
  const systemd = createServer(async ({ url = '' }, response) => {
    const instance = instances.find(({ port }) => url.endsWith(`/investment-data-query@${port}`))
    // As systemctl, it does not wait until the new process is ready.
    await instance?.end()
    if (instance) starts.set(instance.port, instance.restart())
    response.end()
  })
  await once(systemd.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => systemd.close().closeAllConnections())
  const { port } = systemd.address() as AddressInfo
  const [commands = ''] = codeBlocks('Several instances')
  const ports = instances.map((instance) => instance.port)
  const filled = fillIn(commands, { '3001 3002': ports.join(' '), ':1$port': ':$(health $port)' })
  const cases = ports.map((each) => `${each}) echo ${healthPortOf(each)} ;;`).join(' ')
  const systemctl = `systemctl() { curl --silent http://127.0.0.1:${port}/$1/$2; }`
  await runShell(t, `health() { case $1 in ${cases} esac; }\n${systemctl}\n${filled}`)
  t.same([...starts.keys()], ports, 'each instance restarts')
  await Promise.all(starts.values())
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

t.test('200: an instance is killed, and HAProxy repeats its requests on the other', async (t) => {
  const killed = await startServiceProcess(t, options.environment)
  const other = await startServiceProcess(t, options.environment)
  const { url } = await startPlainHaproxy(t, [killed.port, other.port])
  killed.process.kill('SIGSTOP')
  let answered = 0
  const responses = Array.from({ length: 8 }, async () => {
    const { status } = await sendAndRead(url, request)
    answered += 1
    return status
  })
  await until('the other instance has responded', () => answered >= 4)
  t.ok(answered < 8, 'some requests wait for the instance that hangs')
  killed.process.kill('SIGKILL')
  t.strictSame(await Promise.all(responses), Array(8).fill(200))
})

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
  for (const path of ['/health/live', '/%68ealth/ready', '/he%61lth'])
    assertProblem(t, await sendAndRead(url, { path }), 'route_not_found')
  process.kill('SIGSTOP')
  // The first requests wait for the limit of HAProxy, until its health checks fail.
  const response = await sendAndRead(url, request)
  t.equal(response.status, 503)
  assertProblem(t, response, 'service_unavailable')
})

t.test('503: an instance sends a broken response; HAProxy sends the error body', async (t) => {
  // Healthy, with the 401 that startHaproxy() waits for.
  const broken = createServer(({ url = '', socket }, response) => {
    if (url.startsWith('/health/')) response.end()
    else if (url.includes('/none/')) response.writeHead(401).end()
    else socket.end('not HTTP\r\n\r\n')
  })
  await once(broken.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => broken.close().closeAllConnections())
  const { port } = broken.address() as AddressInfo
  const { url } = await startHaproxy(t, [port, port])
  assertProblem(t, await sendAndRead(url, request), 'service_unavailable')
})

/** Waits until a request from this address gets 200. */
const untilServed = (url: string) =>
  until('the address is served again', () =>
    sendAndRead(url, request).then(
      ({ status }) => status === 200,
      () => false,
    ),
  )

/** Opens connections, and counts those that the proxy closes. */
function openConnections(t: Test, url: string, count: number) {
  const state = { closed: 0, destroy: () => sockets.forEach((socket) => void socket.destroy()) }
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').resume()
    return socket
      .on('error', () => {})
      .on('close', () => {
        // A connection that the test closes has not ended.
        if (socket.readableEnded || socket.errored) state.closed += 1
      })
  })
  t.teardown(state.destroy)
  return state
}

t.test('Connections beyond 200 of one address: HAProxy closes them', async (t) => {
  const { port } = service
  const { url } = await startHaproxy(t, [port, port])
  const connections = openConnections(t, url, 300)
  await until('HAProxy closes some', () => connections.closed >= 100)
  await sleep(500)
  // The requests before have connections, too.
  t.ok(connections.closed < 150, `${connections.closed} of 300 connections are closed`)
  connections.destroy()
  await untilServed(url)
})

t.test('More than 1,000 new connections of one address in 10 s: HAProxy closes them', async (t) => {
  const { port } = service
  const { url } = await startHaproxy(t, [port, port])
  let opened = 0
  await until('HAProxy closes some', async () => {
    opened += 100
    const connections = openConnections(t, url, 100)
    await sleep(100)
    connections.destroy()
    return connections.closed > 0
  })
  t.ok(opened > 900, `${opened} connections`)
  await untilServed(url)
})

/** Sends requests from an address until one gets 429 of HAProxy. */
async function untilTarpitted(url: string, path: string, status: number) {
  const statuses = new Set<number>()
  let last = await sendAndRead(url, { path })
  await until('HAProxy sends 429', async () => {
    const responses = Array.from({ length: 20 }, () => sendAndRead(url, { path }))
    for (last of await Promise.all(responses)) statuses.add(last.status)
    return last.status === 429
  })
  t.same(statuses, new Set([status, 429]))
  return last
}

/** Status of a request from another address of this machine. */
async function statusFrom(localAddress: string, url: string): Promise<number> {
  const headers = { authorization: `Bearer ${golden[0]?.token}` }
  const [response] = await once(
    get(`${url}${request.path}`, { localAddress, headers, agent: false }),
    'response',
  )
  return response.resume().statusCode
}

// An instance alone sends an address at most 300 such responses in 10 s: 100 at once, then 20 a second. The limits of
// proxy.md count all instances.
const LOW_LIMITS = { 'rate gt 5000': 'rate gt 200', 'rate gt 500': 'rate gt 200' }

t.test('429: an address causes too many errors in 10 s; others get 200', async (t) => {
  const { port } = service
  const { url } = await startPlainHaproxy(t, [port, port], LOW_LIMITS)
  const { status, headers, text } = await untilTarpitted(url, '/nothing', 404)
  t.match(JSON.parse(text), { status, code: 'too_many_requests' })
  t.equal(headers.get('retry-after'), '10')
  t.match(headers.get('x-request-id'), /^[0-9a-f-]{36}$/)
  t.equal(await statusFrom('127.0.0.1', url), 429)
  t.equal(await statusFrom('127.0.0.2', url), 200)
  await untilServed(url)
})

t.test('429: an address sends too many requests in 10 s; others get 200', async (t) => {
  const { port } = service
  const { url } = await startPlainHaproxy(t, [port, port], LOW_LIMITS)
  await untilTarpitted(url, '/openapi.json', 200)
  t.equal(await statusFrom('127.0.0.2', url), 200)
  await untilServed(url)
})

t.test(
  '200: the health check takes a second; HAProxy sends the address of the client',
  async (t) => {
    const slow = createServer(({ url = '', headers }, response) => {
      if (url.startsWith('/health/')) setTimeout(() => response.end(), 1_000)
      // With the 401 that startPlainHaproxy() waits for.
      else if (url.includes('/none/')) response.writeHead(401).end()
      else response.end(headers['x-forwarded-for'])
    })
    await once(slow.listen(0, '127.0.0.1'), 'listening')
    t.teardown(() => slow.close().closeAllConnections())
    const { port } = slow.address() as AddressInfo
    const { url, log } = await startPlainHaproxy(t, [port, port])
    await sleep(5_000)
    t.equal((await sendAndRead(url, request)).text, '127.0.0.1')
    const [sent] = await once(get(url, { localAddress: '127.0.0.2', agent: false }), 'response')
    t.equal(await text(sent), '127.0.0.2')
    t.notMatch(log(), 'is DOWN')
  },
)

t.test('IPv6: HAProxy limits the connections of a /64 network', async (t) => {
  const [configuration = ''] = codeBlocks('Behind a proxy')
  const folder = await mkdtemp(join(tmpdir(), 'ipv6-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const bind = 'bind :443 ssl crt /etc/haproxy/site.pem alpn http/1.1'
  // The namespace has one user only.
  const values = { [bind]: 'bind :::8080', 'user haproxy': '', 'group haproxy': '' }
  await writeFile(join(folder, 'haproxy.cfg'), fillIn(configuration, values))
  const clients = `
    const { connect } = require('node:net')
    let closed = 0
    for (const localAddress of process.argv.slice(2)) for (let n = 0; n < 150; n += 1)
      connect({ host: 'fd00:1::1', port: 8080, localAddress }).on('error', () => {})
        .on('close', () => { closed += 1 }).resume()
    setTimeout(() => { console.log(closed >= 100); process.exit() }, 3000)`
  await writeFile(join(folder, 'clients.cjs'), clients)
  const commands = `
    ip link set lo up
    for address in fd00:1::1 fd00:1::2 fd00:2::1; do ip -6 addr add $address/128 dev lo nodad; done
    PATH=$PATH:/usr/sbin; haproxy -D -f ${folder}/haproxy.cfg -p ${folder}/pid
    ${process.execPath} ${folder}/clients.cjs fd00:1::1 fd00:1::2
    ${process.execPath} ${folder}/clients.cjs fd00:1::1 fd00:2::1
    kill $(cat ${folder}/pid)`
  const output = await runShell(t, `unshare --map-root-user --net bash -euc '${commands}'`)
  t.match(output, /^true\nfalse$/m)
})

t.test('503: nginx rejects requests beyond 200 connections of one address', async (t) => {
  const { port, process } = await startServiceProcess(t, options.environment)
  const { url } = await startNginx(t, [port, port])
  process.kill('SIGSTOP')
  t.teardown(() => process.kill('SIGCONT'))
  let rejected = 0
  const responses = Array.from({ length: 300 }, async () => {
    const { status } = await sendAndRead(url, request)
    if (status === 503) rejected += 1
  })
  await until('nginx rejects some', () => rejected >= 100)
  await sleep(500)
  t.equal(rejected, 100)
  process.kill('SIGCONT')
  await Promise.all(responses)
  await untilServed(url)
})
