import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import { sql } from 'kysely'
import t from 'tap'
import { serializers } from '../../src/http/log.ts'
import { accountOf } from '../support/database.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addEqualRows, addPortfolioTransactions } from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const service = await startService(t)
const { appId, token, connection } = await addCaller(service.db)
await addPortfolioTransactions(service.db, connection, {}, {})
const LIST = '/api/v1/queries/connections/:token/portfolios/transactions'

/** Waits for `count` lines about requests since `before`. */
async function lines(before: number, count = 1): Promise<Record<string, unknown>[]> {
  const found = () => {
    const all = service.log.slice(before).map((line) => JSON.parse(line))
    return all.filter(({ msg }) => msg === 'request')
  }
  await until(`${count} lines of requests`, () => found().length >= count)
  return found()
}

t.test('each request: one line with its fields', async (t) => {
  const etag = String((await service.get(connection.portfolio, { token })).headers.get('etag'))
  const app = appId
  const cases = [
    [connection.portfolio, {}, { route: LIST, status: 200, app, items: 2 }],
    [connection.portfolio, { headers: { 'if-none-match': etag } }, { status: 304, app, items: 0 }],
    [`${connection.portfolio}?x=1`, {}, { status: 400, app, errorCode: 'invalid_request' }],
    [`${LIST.replace(':token', 'x')}`, {}, { status: 404, app, errorCode: 'connection_not_found' }],
    [connection.portfolio, { token: 'x' }, { status: 401, errorCode: 'invalid_token' }],
    [connection.portfolio, { method: 'POST' }, { status: 405, method: 'POST' }],
    ['/nowhere', {}, { status: 404, errorCode: 'route_not_found' }],
    ['/%ff', {}, { status: 400, errorCode: 'malformed_request' }],
  ] as const
  for (const [path, options, fields] of cases) {
    const before = service.log.length
    const start = performance.now()
    const response = await service.get(path, { token, ...options })
    const [line, ...more] = await lines(before)
    const elapsedMs = performance.now() - start
    t.match(line, { ...fields, requestId: response.headers.get('x-request-id') }, path)
    t.same(more, [])
    t.notOk(line && 'aborted' in line, 'the response is complete')
    const ms = Number(line?.durationMs)
    t.ok(ms > 0 && ms <= elapsedMs, `${path}: ${ms} ms of ${elapsedMs} ms`)
    t.match(String(ms), /^\d+(\.\d{1,3})?$/, 'to the microsecond')
  }
})

t.test('statement: the one that read the rows', async (t) => {
  const cases = {
    '': 'portfolio_transaction first page',
    'from=2023-12-01': 'portfolio_transaction first page',
    'page=1': 'portfolio_transaction later page',
    'since=start': 'portfolio_transaction changes',
  }
  for (const [query, title] of Object.entries(cases)) {
    const before = service.log.length
    await service.get(`${connection.portfolio}?${query}`, { token })
    const [line] = await lines(before)
    t.match(line, { statement: `${title} by tokenHash` }, query)
  }
  const etag = (await service.get(connection.portfolio, { token })).headers.get('etag')
  const before = service.log.length
  await service.get(connection.portfolio, { token, headers: { 'if-none-match': String(etag) } })
  t.match(await lines(before), withLengths([{ status: 304, statement: 'lookup by tokenHash' }]))
})

t.test('slow request: its line has the cause', async (t) => {
  const service = await startService(t, { environment: { DATABASE_POOL_SIZE: '1' } })
  const caller = await addCaller(service.db)
  const rows = { count: 1_200, description: 'x'.repeat(7_000) }
  await addEqualRows(service.db, 'portfolio', caller.connection, rows)
  const lineOf = async ({ headers }: Pick<ServiceResponse, 'headers'>) => {
    const isLine = (line: string) =>
      line.includes(String(headers.get('x-request-id'))) && line.includes('"msg":"request"')
    await until('the line is logged', () => service.log.some(isLine))
    return JSON.parse(String(service.log.find(isLine)))
  }
  // Each cause takes at least this long. A busy machine adds to any of them.
  const heldMs = 300
  const get = (query: string, headers = {}) =>
    service.get(`${caller.connection.portfolio}?${query}`, { token: caller.token, headers })
  await get('limit=1')

  // Two reads are in PostgreSQL, which waits for a lock. The third one waits for a connection.
  const three = await service.db.transaction().execute(async (db) => {
    await sql`lock table portfolio_transaction in access exclusive mode`.execute(db)
    const requests = [get('limit=1'), get('limit=1'), get('limit=1&page=1')]
    await until('a read waits', () => service.database.state().primary.waiting > 0)
    await sleep(heldMs)
    return requests
  })
  const [database, , waited] = await Promise.all((await Promise.all(three)).map(lineOf))
  t.match(database, { statement: /first page by tokenHash/, server: 'primary', items: 1 })
  t.ok(database.databaseMs > heldMs - 1, JSON.stringify(database))
  t.match(waited, { statement: /later page/ })
  t.ok(waited.waitMs > heldMs - 1, JSON.stringify(waited))

  const socket = connect(service.port, '127.0.0.1').pause()
  const before = service.log.length
  const authorization = `Authorization: Bearer ${caller.token}`
  socket.write(`GET ${caller.connection.portfolio}?limit=1200 HTTP/1.0\r\n${authorization}\r\n\r\n`)
  await once(socket, 'readable')
  await sleep(heldMs)
  socket.resume()
  await once(socket, 'close')
  const isLine = (line: string) => line.includes('"msg":"request"')
  await until('the line is logged', () => service.log.slice(before).some(isLine))
  const slow = JSON.parse(String(service.log.slice(before).find(isLine)))
  t.match(slow, { mediaType: 'application/json', items: 1_200 })
  t.notOk('encoding' in slow)
  t.ok(slow.writeMs > heldMs - 1, JSON.stringify(slow))
  t.ok(slow.bytes > 8_000_000)

  const csv = await get('', { accept: 'text/csv', 'accept-encoding': 'gzip' })
  const line = await lineOf(csv)
  t.match(line, { mediaType: 'text/csv', encoding: 'gzip', items: 1_200, status: 200 })
  t.ok(line.bytes < 4_000_000, 'compressed')
  t.ok(line.durationMs > line.writeMs)
  for (const each of [database, waited, slow])
    t.ok(each.waitMs + each.databaseMs + each.writeMs <= each.durationMs + 1)
})

t.test('malformed request: one line', async (t) => {
  const before = service.log.length
  await sendRaw({ port: service.port, bytes: `GET ${connection.portfolio} HTTP/9.9\r\n\r\n` })
  const [line = {}, ...more] = await lines(before)
  t.match(line, { status: 400, errorCode: 'malformed_request' })
  t.notOk('durationMs' in line || 'method' in line, 'there is no parsed request')
  t.same(more, [])
})

t.test('503: the line has the reason', async (t) => {
  const { limits } = service
  const all = accountOf(limits)
  all.take(limits.memory.limit)
  const before = service.log.length
  t.equal((await service.get(connection.portfolio, { token })).status, 503)
  const errorCode = 'service_unavailable'
  t.match(
    await lines(before),
    withLengths([{ status: 503, errorCode, unavailableReason: 'overload' }]),
  )
  all.close(false)
})

t.test('disconnect before the response: `aborted` without a status', async (t) => {
  const before = service.log.length
  await service.db.transaction().execute(async (db) => {
    await sql`lock table portfolio_transaction in access exclusive mode`.execute(db)
    const socket = connect(service.port, '127.0.0.1')
    socket.write(request(connection.portfolio))
    await until('a read is in flight', () => service.database.state().primary.inUse > 0)
    socket.destroy()
    const [line] = await lines(before)
    t.match(line, { route: LIST, method: 'GET', aborted: true })
    t.notOk(line && 'status' in line, 'no status was sent')
  })
})

t.test('disconnect with a malformed body: no failure is logged', async (t) => {
  const before = service.log.length
  const bytes = `${request(connection.portfolio).trimEnd()}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`
  for (let n = 0; n < 20; n += 1) await sendRaw({ port: service.port, bytes })
  const found = await lines(before, 40)
  t.equal(
    found.filter(({ aborted }) => aborted).length,
    20,
    'one line of the parser and one of the route',
  )
  await sleep(50)
  t.notMatch(service.log.slice(before).join(''), /could not be served/)
})

t.test('disconnect in the middle of a response: `aborted` with its status', async (t) => {
  const rows = { count: 1_100, description: 'x'.repeat(9_000) }
  await addEqualRows(service.db, 'portfolio', connection, rows)
  const before = service.log.length
  const socket = connect(service.port, '127.0.0.1')
  socket.write(request(`${connection.portfolio}?limit=5000`))
  await once(socket, 'data')
  socket.destroy()
  t.match(
    await lines(before),
    withLengths([{ route: LIST, status: 200, app: appId, aborted: true }]),
  )
})

t.test('all lines: no token and no path', async (t) => {
  const secrets = [token, connection.token, 'portfolios/transactions?', 'limit=5000']
  for (const secret of secrets) {
    t.notOk(service.log.some((line) => line.includes(secret)))
  }
})

t.test(
  'repeated rejections: one line a second, with the number of those without a line',
  async (t) => {
    const service = await startService(t, { environment: { MAX_REQUESTS: '4' } })
    const { connection } = await addCaller(service.db)
    const isRejected = (line: string) => /"status":(401|503)/.test(line)
    let asked = 0
    const ask = async (count: number) => {
      asked += count
      const request = () => service.get(connection.orders, { token: 'unknown' })
      await Promise.all(Array.from({ length: count }, request))
      return service.log.filter(isRejected)
    }
    await until('lines are missing', async () => (await ask(300)).length < asked - 50)
    const reasons = service.log.filter((line) => line.includes('could not be served'))
    t.ok(reasons.length < asked - 50, `${reasons.length} more lines for ${asked} requests`)
    await sleep(1_000)
    const lines = (await ask(200)).map((line) => JSON.parse(line))
    const unlogged = lines.map((line) => Number(line.unlogged ?? 0)).reduce((a, b) => a + b)
    t.ok(unlogged >= 50, `${unlogged} without a line`)
    t.ok(lines.length + unlogged <= asked)
  },
)

t.test('redacted logger: no path of a request, no additional properties of an error', async (t) => {
  const log: string[] = []
  const stream = { write: (line: string) => void log.push(line) }
  const app = fastify({ logger: { stream, serializers } })
  app.get('/:token', async (request, reply) => {
    const cause = Object.assign(new Error('the cause'), { payload: { sub: 'secret' } })
    cause.cause = 'the secret'
    const err = Object.assign(new Error('the error', { cause }), { claims: 'secret', code: 'E1' })
    app.log.info({ req: request, res: reply, err }, 'all of it')
    const circular = new Error('the error')
    circular.cause = circular
    app.log.info({ err: circular }, 'circular')
    return {}
  })
  await app.inject('/secret?secret')
  t.notOk(log.join('').includes('secret'))
  const line = log.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'all of it')
  t.match(line, {
    req: { method: 'GET', route: '/:token' },
    res: { statusCode: 200 },
    err: {
      ...{ type: 'Error', message: 'the error', code: 'E1' },
      cause: { message: 'the cause', cause: { type: 'string', message: '', stack: '' } },
    },
  })
  const { err } = log.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'circular')
  t.match(err, { cause: { cause: { cause: { message: 'the error' } } } })
  t.equal(err.cause.cause.cause.cause, undefined)
})

function request(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
}
