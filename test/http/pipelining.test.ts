import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect } from 'node:net'
import t from 'tap'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const environment = {
  // Less than the requests for the documentation page that this test holds.
  MAX_REQUESTS: '20',
  // With this address, few documents (3 MB) fit into the buffers of a connection.
  PUBLIC_URL: `https://example.com/${'long'.repeat(50_000)}`,
}
const { db, get, port } = await startService(t, { environment })
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {}, {})
const PATHS = ['/docs', '/openapi.json', '/health/live', '/health/ready', '/nothing', '/%zz']

const pipelined = (path: string, count: number) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(count)

t.test('10 requests at once: 10 responses', async (t) => {
  for (const path of [...PATHS, connection.portfolio]) {
    const bytes = pipelined(path, 10)
    const { responses } = await sendRaw({ port, bytes, responses: 10 })
    t.equal(responses.length, 10, path.replace(connection.token, ':token'))
  }
})

t.test('1000 requests at once: the connection is closed', async (t) => {
  for (const path of [...PATHS, connection.portfolio]) {
    const bytes = pipelined(path, 1_000)
    const { responses, closed } = await sendRaw({ port, bytes, responses: 1_000 })
    t.ok(closed, path.replace(connection.token, ':token'))
    t.ok(responses.length <= 10, `${responses.length} responses`)
  }
})

t.test(
  '1000 requests at once: the service handles 10, and does not parse the others',
  async (t) => {
    // Node.js would make an object of each request that it parses.
    let parsed = 0
    const count = () => {
      parsed += 1
    }
    subscribe('http.server.request.start', count)
    t.teardown(() => unsubscribe('http.server.request.start', count))
    await sendRaw({ port, bytes: pipelined('/health/live', 1_000), responses: 1_000 })
    t.equal(parsed, 11)
  },
)

t.test('11 requests at once, also after others: the connection is closed', async (t) => {
  for (const before of [0, 50]) {
    const bytes = [
      ...Array(before).fill(pipelined('/health/live', 1)),
      pipelined('/health/live', 11),
    ]
    const { closed } = await sendRaw({ port, bytes, responses: before + 11 })
    t.ok(closed)
  }
})

t.test('1000 requests one after the other: 1000 responses', async (t) => {
  const bytes = Array.from({ length: 1_000 }, () => pipelined('/health/live', 1))
  const { responses } = await sendRaw({ port, bytes, responses: 1_000 })
  t.equal(responses.length, 1_000)
})

t.test('200: while clients request the documentation page and read nothing', async (t) => {
  const sockets = Array.from({ length: 21 }, () => {
    return connect(port, '127.0.0.1')
      .on('error', () => {})
      .pause()
  })
  const [last, ...others] = sockets
  for (const socket of others) socket.write(pipelined('/openapi.json', 10))
  const page = async () => (await get('/docs')).status
  await until('the page has no room', async () => {
    // The first responses of a connection fit into its buffers.
    last?.write(pipelined('/openapi.json', 1))
    return (await page()) === 503
  })
  t.equal((await get('/health/ready')).status, 200)
  for (let i = 0; i < 20; i += 1) {
    t.equal((await get(connection.portfolio, { token })).status, 200)
  }
  for (const socket of sockets) socket.destroy()
  await until('the page has room again', async () => (await page()) === 200)
})
