import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addEqualRows } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

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
      [1, 2].map(async () => {
        const socket = connect(port, '127.0.0.1')
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
  await until('the response is aborted', () => log.some((line) => line.includes('"aborted":true')))
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
    import { socketLimit } from './src/http/limits.ts'
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
