import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { sql } from 'kysely'
import t from 'tap'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller, type Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Rows of 8 KB in three blocks: more than the buffers between two sockets hold, also compressed. */
const ROWS = 4_100

const service = await startService(t)
const { db, database, databaseUrl, log } = service
const { memory } = service.limits
const caller = await addCaller(db)
await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, operation_date_day, description)
  select ${caller.connection.id}, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n,
    date '2020-01-01' + n / 10,
    (select string_agg(md5(n || ' ' || m), '') from generate_series(1, 250) as m)
  from generate_series(1, ${ROWS}::integer) as n`.execute(db)

interface Download {
  response: IncomingMessage
  /** Reads the rest. Rejects if the connection is closed before the end. */
  read(): Promise<Buffer>
}

/** Starts an export, and reads nothing of the body. */
async function startExport(
  { token, connection }: Caller,
  headers = {},
  port = service.port,
): Promise<Download> {
  const sent = get({
    port,
    host: '127.0.0.1',
    path: connection.account,
    headers: { authorization: `Bearer ${token}`, accept: 'application/x-ndjson', ...headers },
  })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  // The reset of a connection is also an error of the request.
  sent.on('error', () => {})
  t.equal(response.statusCode, 200)
  return { response, read: () => buffer(response) }
}

const countLines = (body: Buffer) => body.toString().split('\n').length - 1

/** True if the service uses neither memory nor a database connection for responses. */
const isIdle = () => memory.used === 0 && database.state().primary.inUse === 0

async function change(): Promise<void> {
  await db
    .updateTable('account_transaction')
    .set({ amount: '0.1' })
    .where('connection_id', '=', caller.connection.id)
    .where('operation_date_day', '=', '2020-01-01')
    .execute()
}

for (const headers of [{}, { 'accept-encoding': 'identity' }, { 'accept-encoding': 'gzip' }]) {
  const name = JSON.stringify(headers)
  t.test(`data changes during an export, ${name}: the connection is closed`, async (t) => {
    const { read } = await startExport(caller, headers)
    await change()
    await t.rejects(read(), { code: 'ECONNRESET' })
    await until('the service is idle', isIdle)
  })
}

/** Starts an export, and reads one chunk of the response as it is on the socket. */
async function startOnSocket(version: string, port = service.port): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(
    `GET ${caller.connection.account} HTTP/${version}\r\nhost: localhost\r\n` +
      `authorization: Bearer ${caller.token}\r\naccept: application/x-ndjson\r\n\r\n`,
  )
  await once(socket, 'readable')
  t.match(String(socket.read()), /^HTTP\/1\.1 200 OK\r\n/)
  return socket
}

const VERSIONS = ['1.0', '1.1']

for (const version of VERSIONS) {
  t.test(`data changes during an export over HTTP/${version}: a reset`, async (t) => {
    const socket = await startOnSocket(version)
    await change()
    await t.rejects(buffer(socket), { code: 'ECONNRESET' })
    await until('the service is idle', isIdle)
  })

  t.test(`a locked table during an export over HTTP/${version}: a reset`, async (t) => {
    const socket = await startOnSocket(version)
    await db.transaction().execute(async (locking) => {
      await sql`lock table account_transaction in access exclusive mode`.execute(locking)
      await t.rejects(buffer(socket), { code: 'ECONNRESET' })
    })
    await until('the service is idle', isIdle)
    const { read } = await startExport(caller)
    t.equal(countLines(await read()), ROWS, 'the next one is whole')
  })

  t.test(`a client that reads nothing over HTTP/${version}: a reset`, async (t) => {
    const { port, limits, server } = await startService(t, { databaseUrl })
    server.timeout = 2_000
    const { memory } = limits
    const socket = await startOnSocket(version, port)
    await until('the service has disconnected the client', () => memory.used === 0)
    await t.rejects(buffer(socket), { code: 'ECONNRESET' })
  })

  for (const [event, data] of [
    ['half of the connection is closed', undefined],
    ['another request', `GET / HTTP/1.1\r\nhost: localhost\r\n\r\n`],
    ['CONNECT', `CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n`],
    ['no request', '\0\r\n\r\n'],
  ] as const)
    t.test(`${event}, in the middle of an export over HTTP/${version}: a reset`, async (t) => {
      const socket = await startOnSocket(version)
      if (data === undefined) socket.end()
      else socket.write(data)
      await t.rejects(buffer(socket), { code: 'ECONNRESET' })
      await until('the service is idle', isIdle)
    })

  t.test(`shutdown during an export over HTTP/${version}: a reset`, async (t) => {
    const { port, end } = await startServiceProcess(t, {
      DATABASE_URL: databaseUrl,
      SHUTDOWN_DELAY_MS: '0',
      STATEMENT_TIMEOUT_MS: '500',
    })
    const socket = await startOnSocket(version, port)
    t.equal(await end('SIGTERM'), 1)
    await t.rejects(buffer(socket), { code: 'ECONNRESET' })
  })
}

t.test('200: an export over HTTP/1.0 is whole', async (t) => {
  const rest = await buffer(await startOnSocket('1.0'))
  const { read } = await startExport(caller)
  t.ok(rest.length > 30_000_000)
  t.ok(rest.equals((await read()).subarray(-rest.length)))
})

t.test('changes before and after an export: it is whole', async (t) => {
  await change()
  const { read } = await startExport(caller)
  t.equal(countLines(await read()), ROWS)
  await change()
})

t.test('a revoked token: the connection is closed', async (t) => {
  const { read } = await startExport(caller)
  const revoke = (at: Date | null) =>
    db.updateTable('app_token').set({ revoked_at: at }).where('app_id', '=', caller.appId).execute()
  await revoke(new Date())
  await t.rejects(read(), { code: 'ECONNRESET' })
  await revoke(null)
})

t.test('a client leaves: the service reads no further rows', async (t) => {
  const { response } = await startExport(caller)
  await once(response, 'readable')
  response.destroy()
  await until('the service is idle', isIdle)
  const [last = ''] = log.filter((line) => line.includes('"msg":"request"')).slice(-1)
  t.match(JSON.parse(last), { status: 200, aborted: true, items: ROWS })
})

t.test('a client that does not read: no connection is in use, and its own is closed', async (t) => {
  const { port, limits, server } = await startService(t, { databaseUrl })
  server.timeout = 2_000
  const { memory } = limits
  const { read } = await startExport(caller, {}, port)
  await until('the block is read', () => database.state().primary.inUse === 0)
  const { rows } = await sql<{ count: number }>`select count(*)::integer from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`.execute(db)
  t.strictSame(rows, [{ count: 0 }])
  // Two blocks of 16 MB would not fit.
  t.ok(memory.used < 24_000_000, `${memory.used} bytes`)
  await until('the service has disconnected the client', () => memory.used === 0)
  await t.rejects(read(), { code: 'ECONNRESET' })
})

t.test('503: an export counts in MAX_REQUESTS until it ends', async (t) => {
  const { port, get } = await startService(t, { databaseUrl, environment: { MAX_REQUESTS: '1' } })
  const { read } = await startExport(caller, {}, port)
  const statusOf = async () => (await get(caller.connection.orders, caller)).status
  t.equal(await statusOf(), 503)
  t.equal(countLines(await read()), ROWS)
  await until('there is room again', async () => (await statusOf()) === 200)
})
