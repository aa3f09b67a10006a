import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import { scrape } from '../support/metrics.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addEqualRows, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const environment = {
  MAX_REQUESTS: '40',
  METRICS_PORT: '0',
  STATEMENT_TIMEOUT_MS: '60000',
}
const service = await startService(t, { environment })
const { db, get, port } = service
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {}, {})
const PATHS = ['/docs', '/openapi.json', '/health/live', '/health/ready', '/nothing', '/%zz']

const one = (path: string, method = 'GET', lines = '', bearer = token) =>
  `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${bearer}\r\n${lines}\r\n`
const pipelined = (path: string, count: number) => one(path).repeat(count)
const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'

/** Opens connections that send bytes and read nothing. */
function open(count: number, bytes: string): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.pause().write(bytes)
    return socket
  })
}

/** Waits until no request is in flight, and no memory of responses is in use. */
async function untilIdle(what: string) {
  await until(`nothing is in flight: ${what}`, async () => {
    const series = await scrape(service)
    const bytes = series.get('response_memory_bytes')
    return series.get('http_requests_in_flight') === 0 && bytes === 0
  })
}

t.test('2 or 1000 requests at once: the connection is closed', async (t) => {
  for (const path of [...PATHS, connection.portfolio]) {
    const isLong = path === '/docs' || path === connection.portfolio
    for (const count of isLong ? [2, 1_000] : [2]) {
      const bytes = pipelined(path, count)
      const { responses, closed } = await sendRaw({ port, bytes, responses: count })
      t.ok(closed, path.replace(connection.token, ':token'))
      t.ok(responses.length <= 1, `${responses.length} responses`)
    }
  }
})

t.test('1000 requests at once: the service does not parse those after the second', async (t) => {
  // Node.js would make an object of each request that it parses.
  let parsed = 0
  const count = () => {
    parsed += 1
  }
  subscribe('http.server.request.start', count)
  t.teardown(() => unsubscribe('http.server.request.start', count))
  await sendRaw({ port, bytes: pipelined('/health/live', 1_000), responses: 1_000 })
  t.equal(parsed, 2)
})

t.test('2 requests at once after 50 others: the connection is closed', async (t) => {
  const bytes = [...Array(50).fill(one('/health/live')), pipelined('/health/live', 2)]
  const { closed } = await sendRaw({ port, bytes, responses: 52 })
  t.ok(closed)
})

t.test('200 requests one after the other on a connection: 200 responses', async (t) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const sockets = new Set<unknown>()
  for (let i = 0; i < 200; i += 1) {
    await new Promise<void>((resolve, reject) => {
      request({ port, agent, path: PATHS[i % PATHS.length] })
        .on('error', reject)
        .on('response', (response) => {
          sockets.add(response.socket)
          response.resume().on('end', resolve)
        })
        .end()
    })
  }
  t.equal(sockets.size, 1)
  agent.destroy()
})

t.test('200: a request after the HEAD of a page that is sent in chunks', async (t) => {
  const { token, connection } = await addCaller(db)
  await addEqualRows(db, 'portfolio', connection, { count: 300, description: 'x'.repeat(10_000) })
  const [head, next] = ['HEAD', 'GET'].map((method) =>
    one(method === 'HEAD' ? connection.portfolio : '/health/live', method, '', token),
  ) as [string, string]
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    let received = ''
    const received2 = new Promise<void>((resolve) => {
      socket.on('data', (chunk) => {
        received += chunk
        // The client sends its next request as soon as it has all headers.
        if (received.endsWith('\r\n\r\n')) socket.write(next)
        if (received.includes('"live"')) resolve()
      })
      socket.on('close', resolve)
    })
    socket.write(head)
    await received2
    socket.destroy()
    t.match(received, '"live"')
  }
})

/** Bytes after which Node.js handles the rest of a connection in another way, or not at all. */
const ENDINGS: Record<string, string> = {
  CONNECT,
  'CONNECT with a body': `${CONNECT}${'x'.repeat(1_000)}`,
  'two CONNECT': CONNECT.repeat(2),
  'an upgrade': one('/nothing', 'GET', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'),
  HTTP2: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an expectation': one('/nothing', 'GET', 'Expect: 100-continue\r\nContent-Length: 9\r\n'),
  'bytes that are no request': '\0\0\r\n\r\n',
  'headers that are too long': `GET / HTTP/1.1\r\na: ${'x'.repeat(20_000)}`,
  'a body that ends early': one('/nothing', 'POST', 'Content-Length: 900\r\n'),
  'a wrong chunk': `${one('/nothing', 'POST', 'Transfer-Encoding: chunked\r\n')}z\r\n`,
  HEAD: one('/openapi.json', 'HEAD'),
  nothing: '',
}

t.test('0 in flight after each end of a connection, and 200 for all', async (t) => {
  for (const [name, ending] of Object.entries(ENDINGS)) {
    for (const path of ['/openapi.json', connection.portfolio, '/nothing']) {
      for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
        const sockets = [
          ...open(2, one(path) + ending),
          ...open(2, one('/nothing') + one(path) + ending),
        ]
        await sleep(30)
        for (const socket of sockets) socket.resume()[end]()
      }
    }
    await untilIdle(name)
  }
  for (const path of ['/docs', '/openapi.json', '/health/ready'])
    t.equal((await get(path)).status, 200, path)
  t.equal((await get(connection.portfolio, { token })).status, 200)
})

t.test('0 in flight: CONNECT behind many requests for documents', async (t) => {
  const sockets = open(10, `${one('/nothing')}${pipelined('/openapi.json', 8)}${CONNECT}`)
  await sleep(200)
  for (const socket of sockets) socket.destroy()
  await untilIdle('CONNECT')
  t.equal((await get('/docs')).status, 200)
})

t.test('0 in flight: CONNECT behind a request while the database hangs', async (t) => {
  for (const bearer of [token, 'app_unknown']) {
    const bytes = one(connection.portfolio, 'GET', '', bearer)
    await withBlockedStatements(
      t,
      db,
      async () => {
        const sockets = [bytes + CONNECT, one('/nothing') + bytes + CONNECT, bytes].flatMap((all) =>
          open(30, all),
        )
        await sleep(300)
        for (const socket of sockets) socket.destroy()
        await until('no request is in flight', async () => {
          return (await scrape(service)).get('http_requests_in_flight') === 0
        })
      },
      'app_token',
    )
    await untilIdle('the database is back')
    for (let i = 0; i < 20; i += 1)
      t.equal((await get(connection.portfolio, { token })).status, 200)
  }
})

t.test('limits of connections', async (t) => {
  const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n'

  t.test('Keep-Alive: longer than the 60 s of usual load balancers', async (t) => {
    const { port } = await startService(t)
    const { responses } = await sendRaw({ port, bytes: LIVE })
    t.equal(responses[0]?.headers.get('keep-alive'), 'timeout=72')
  })

  t.test(
    'too many connections: a further one is closed, and accepted after another one',
    async (t) => {
      const { port, server } = await startService(t)
      server.maxConnections = 2
      const open = await Promise.all(
        ['127.0.0.2', '127.0.0.3'].map(async (localAddress) => {
          const socket = connect({ port, host: '127.0.0.1', localAddress })
          socket.write(LIVE)
          await once(socket, 'data')
          return socket
        }),
      )
      t.same(await sendRaw({ port, bytes: LIVE }), { responses: [], closed: true, received: '' })
      for (const socket of open) socket.destroy()
      await until('a connection is accepted', async () => {
        const { responses } = await sendRaw({ port, bytes: LIVE })
        return responses[0]?.status === 200
      })
    },
  )

  t.test('a client that does not read is disconnected', async (t) => {
    const { db, port, log, server } = await startService(t)
    t.equal(server.timeout, 120_000)
    server.timeout = 1_000
    const { token, connection } = await addCaller(db)
    // 16 MB, more than the buffers between two sockets hold.
    const rows = { count: 400, description: '😀'.repeat(10_000) }
    await addEqualRows(db, 'portfolio', connection, rows)
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    const authorization = `Authorization: Bearer ${token}`
    socket
      .pause()
      .write(`GET ${connection.portfolio} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
    await until('the response is aborted', () =>
      log.some((line) => line.includes('"aborted":true')),
    )
  })

  t.test('200 with Connection: close: a request that ends during shutdown', async (t) => {
    const { port, close } = await startService(t)
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(LIVE + LIVE.slice(0, -2))
    const [first] = await once(socket, 'data')
    t.match(String(first), /^HTTP\/1\.1 200 .*\r\nconnection: keep-alive\r\n/is)
    const closed = close()
    await until('new connections are refused', async () => {
      const next = connect(port, '127.0.0.1')
      return await once(next, 'connect').then(
        () => {
          next.destroy()
          return false
        },
        () => true,
      )
    })
    socket.write('\r\n')
    const [second] = await once(socket, 'data')
    t.match(String(second), /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is)
    await closed
  })

  /** Runs socketLimit() in a process that may open this number of files. */
  async function limitOf(files: number, environment: Record<string, string>): Promise<number> {
    const script = `
    import { readConfig } from './src/config.ts'
    import { socketLimit } from './src/http/sockets.ts'
    console.log(socketLimit(readConfig(process.env)))`
    const node = [process.execPath, '--input-type=module', '--eval', script]
    const args = ['-c', `ulimit -n ${files} && exec "$@"`, 'sh', ...node]
    const env = { ...process.env, DATABASE_URL: 'postgres://127.0.0.1/x', ...environment }
    return Number((await promisify(execFile)('sh', args, { env })).stdout)
  }

  t.test('the limit of files: leaves files for PostgreSQL and 100 others', async (t) => {
    const DATABASE_REPLICA_URL = 'postgres://127.0.0.1/a,postgres://127.0.0.1/b'
    const cases: [number, Record<string, string>, number][] = [
      [50, {}, 1],
      [1024, { DATABASE_REPLICA_URL, DATABASE_POOL_SIZE: '20' }, 1024 - 3 * 21 - 100],
      [9000, {}, 5_000],
    ]
    await Promise.all(
      cases.map(async ([maxFiles, environment, maxSockets]) =>
        t.equal(await limitOf(maxFiles, environment), maxSockets),
      ),
    )
  })
})
