import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const service = await startService(t)
const { limits, log, port } = service
const { token, connection } = await addCaller(service.db)
const address = limits.tenants.of('127.0.0.1')

/** Makes this address one that has used all turns without a delay. Its next one begins in `ms`. */
function repeat(tenant = address, ms = 3_000): void {
  tenant.rejectionAt = performance.now() + ms
}

const request = (line: string, ...headers: string[]) =>
  `${[line, 'Host: x', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`

/** Returns what the service sends, until it closes the connection. */
const received = async (bytes: string) => (await sendRaw({ port, bytes })).received

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

for (const [name, [text, status]] of Object.entries(anonymous)) {
  t.test(
    `${status} ${name}: waits for its turn if the address repeats such requests`,
    async (t) => {
      repeat(address, -10_000)
      t.match(await received(text), `HTTP/1.1 ${status} `, 'without a delay at first')
      repeat()
      let isSent = false
      const response = received(text).finally(() => {
        isSent = true
      })
      await until('it waits', () => limits.rejections.waiting === 1)
      t.notOk(isSent)
      // An app is served meanwhile, and another address does not wait.
      t.equal((await service.get(connection.orders, { token })).status, 200)
      t.equal(limits.tenants.of('127.0.0.2').rejections, 0)
      t.match(await response, `HTTP/1.1 ${status} `)
    },
  )

  t.test(`${status} ${name}: the connection is closed if too many wait`, async (t) => {
    const { rejections } = limits
    repeat()
    rejections.waiting = 2_000
    t.teardown(() => {
      rejections.waiting = 0
    })
    t.equal(await received(text), '')
  })

  t.test(`${status} ${name}: the log has samples of repeated ones`, async (t) => {
    /** Sends a repeated request. @returns its line in the log, if it has one */
    const sendRepeated = async (loggedAt: number) => {
      const before = log.length
      const { unlogged } = address
      repeat(address, 100)
      address.loggedAt = loggedAt
      await received(text)
      const line = () => log.slice(before).find((line) => line.includes('"msg":"request"'))
      await until('it is logged or counted', () => Boolean(line()) || address.unlogged > unlogged)
      return line()
    }
    // On a busy machine, a request may arrive when its address has a turn again: it is then not a repeated one.
    await until('no line', async () => {
      return (await sendRepeated(performance.now() + 60_000)) === undefined
    })
    t.ok(address.unlogged > 0, 'it is counted')
    await until('a line with the number of those without one', async () => {
      const line = await sendRepeated(Number.NEGATIVE_INFINITY)
      return line !== undefined && JSON.parse(line).unlogged > 0
    })
    address.unlogged = 0
  })
}

t.test('health check: does not wait for the rejections of its address', async (t) => {
  repeat()
  const { status } = await service.get('/health/ready')
  t.equal(status, 200)
  t.equal(limits.rejections.waiting, 0)
})

t.test('health check: waits for its turn if the address repeats health checks', async (t) => {
  repeat(limits.tenants.ofHealthChecks('127.0.0.1'), 1_000)
  const response = service.get('/health/live')
  await until('it waits', () => limits.rejections.waiting === 1)
  t.equal((await response).status, 200)
})

t.test(
  'further bytes behind a malformed request: one response, one place in the queue',
  async (t) => {
    repeat(address, 1_000)
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
