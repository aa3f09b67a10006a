import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { Tenant } from '../../src/limits/tenants.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const service = await startService(t)
const { limits, log, port } = service
const { token, connection } = await addCaller(service.db)
const address = limits.tenants.of('127.0.0.1')

/** Makes this address one that repeats its requests: the next place begins in `ms`. */
function repeat(tenant = address, ms = 3_000): void {
  const { rejections } = limits
  // A request that has taken long does not wait.
  while (rejections.lastAt(tenant) < performance.now() + ms) rejections.take(tenant, -60_000)
}

const request = (line: string, ...headers: string[]) =>
  `${[line, 'Host: x', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`

/** Returns what the service sends to an address, until it closes the connection. */
const received = async (bytes: string, localAddress = '127.0.0.1') =>
  (await sendRaw({ port, bytes, localAddress })).received

const isOfApp = (line: string) => line.includes('"status":200') && line.includes('assets-transfer')

/** Requests of clients without credentials, with the status of their responses. */
const anonymous = {
  'unknown path': [request('GET /nope HTTP/1.1'), 404],
  'path that cannot be decoded': [request('GET /%zz HTTP/1.1'), 400],
  'other method': [request('PUT /docs HTTP/1.1'), 405],
  body: [request('GET /docs HTTP/1.1', 'Content-Length: 1'), 400],
  'no HTTP': ['nonsense\r\n\r\n', 400],
  CONNECT: [request('CONNECT x:1 HTTP/1.1'), 405],
  page: [request('GET /docs HTTP/1.1'), 200],
  'file of the page': [request('GET /docs/static/page.js HTTP/1.1'), 200],
  document: [request('GET /openapi.json HTTP/1.1'), 200],
} as const

/** The requests, each with an address of its own. */
const clients = Object.entries(anonymous).map(([name, [text, status]], index) => {
  const client = `127.0.1.${index + 1}`
  return { name: `${status} ${name}`, text, status, client, tenant: limits.tenants.of(client) }
})

t.test('waits for its turn if the address repeats such requests', async (t) => {
  await Promise.all(
    clients.map(async ({ name, text, status, client, tenant }) => {
      t.match(await received(text, client), `HTTP/1.1 ${status} `, `${name}: no delay at first`)
      repeat(tenant)
      let isSent = false
      const response = received(text, client).finally(() => {
        isSent = true
      })
      await until(`${name}: it waits`, () => limits.rejections.shares.of(tenant) === 1)
      t.notOk(isSent, name)
      // An app is served meanwhile.
      t.equal((await service.get(connection.orders, { token })).status, 200)
      t.match(await response, `HTTP/1.1 ${status} `, name)
    }),
  )
  t.equal(limits.rejections.shares.of(limits.tenants.of('127.0.0.2')), 0)
})

t.test('the connection is closed if too many wait', async (t) => {
  const { shares } = limits.rejections
  const others = new Tenant('others')
  shares.add(others, 2_000)
  t.teardown(() => shares.add(others, -2_000))
  for (const { name, text, client, tenant } of clients) {
    repeat(tenant)
    t.equal(await received(text, client), '', name)
  }
})

t.test('the log has samples of repeated ones', async (t) => {
  /** Sends a repeated request. @returns its line in the log, if it has one */
  const sendRepeated = async ({ text, client, tenant }: (typeof clients)[number]) => {
    const before = log.length
    repeat(tenant, 60)
    await received(text, client)
    // The log has the line, if there is one, before that of a later request.
    await service.get(connection.orders, { token })
    const lines = () => log.slice(before).filter((line) => line.includes('"msg":"request"'))
    await until('the later request is logged', () => lines().some(isOfApp))
    return lines().find((line) => !isOfApp(line))
  }
  for (const client of clients)
    await until(`${client.name}: no line`, async () => (await sendRepeated(client)) === undefined)
  for (const client of clients) {
    await until(`${client.name}: a line with the number of those without one`, async () => {
      const line = await sendRepeated(client)
      return line !== undefined && JSON.parse(line).unlogged > 0
    })
    t.pass(client.name)
  }
})

t.test('health check: does not wait for the rejections of its address', async (t) => {
  repeat()
  const { status } = await service.get('/health/ready')
  t.equal(status, 200)
  t.equal(limits.rejections.waiting, 0)
})

t.test('health check: waits for its turn if the address repeats health checks', async (t) => {
  repeat(limits.tenants.ofHealthChecks('127.0.0.1'))
  const response = service.get('/health/live')
  await until('it waits', () => limits.rejections.waiting === 1)
  t.equal((await response).status, 200)
})

t.test(
  'further bytes behind a malformed request: one response, one place in the queue',
  async (t) => {
    repeat(address)
    const socket = connect(port, '127.0.0.1').setEncoding('latin1')
    let responses = ''
    socket.on('data', (text) => {
      responses += text
    })
    socket.write('nonsense\r\n\r\n')
    await until('it waits', () => limits.rejections.waiting === 1)
    for (let n = 0; n < 20; n += 1) socket.write('more nonsense\r\n\r\n')
    await within('the end', once(socket, 'close'))
    t.equal(responses.split('HTTP/1.1 400').length, 2)
    t.equal(limits.rejections.waiting, 0)
  },
)

t.test('connections: an address has at most three quarters of them', async (t) => {
  const few = await startService(t)
  few.server.maxConnections = 20
  const open = (localAddress: string) => {
    const socket = connect({ port: few.port, host: '127.0.0.1', localAddress })
    t.teardown(() => socket.destroy())
    return socket.on('error', () => {}).resume()
  }
  const sockets = Array.from({ length: 20 }, () => open('127.0.0.3'))
  await until('five are closed', () => sockets.filter(({ destroyed }) => destroyed).length === 5)
  const other = open('127.0.0.4')
  other.write(request('GET /health/live HTTP/1.1'))
  const [response] = await within('a response', once(other, 'data'))
  t.match(String(response), 'HTTP/1.1 200')
  for (const socket of sockets) socket.destroy()
})
