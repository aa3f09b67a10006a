import { METHODS } from 'node:http'
import { sql } from 'kysely'
import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { duringOutage } from '../support/outage.ts'
import { isProblem } from '../support/problem.ts'
import { sendRaw } from '../support/raw-http.ts'
import {
  addCaller,
  addPortfolioTransactions,
  addresses,
  addToken,
  addTransferOrders,
  lists,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, log, databaseUrl, port } = await startService(t)
const { appId, token, connection } = await addCaller(db)
const expired = await addToken(db, appId, { expires_at: new Date(0) })
const revoked = await addToken(db, appId, { revoked_at: new Date(0) })
const endpoints = [connection.portfolio, connection.account, connection.orders]
await addPortfolioTransactions(db, connection, { description: 'a private matter' })

t.test('every error: the same members in the same order (contract 16)', async (t) => {
  const members = ['status', 'code', 'title', 'detail', 'requestId']
  const responses = [
    await get(connection.orders),
    await get(`${connection.orders}x`, { token }),
    await get(connection.orders, { token, method: 'DELETE' }),
    await get('/%ff'),
    await get('/%ff', { method: 'PUT' }),
  ]
  for (const response of responses) {
    t.strictSame(Object.keys(response.json()), members)
    t.equal(response.headers.get('cache-control'), 'no-store', 'errors are not cached')
  }
  const rejected = await get(`${connection.orders}?x`, { token })
  t.strictSame(Object.keys(rejected.json()), [...members, 'errors'])
  t.strictSame(Object.keys(rejected.json().errors[0]), ['parameter', 'code', 'detail'])
})

t.test('400 malformed_request: a path that cannot be decoded (contract 7)', async (t) => {
  for (const path of ['/%', '/%zz', connection.orders.replace(connection.token, '%ff')]) {
    isProblem(t, await get(path, { token }), 'malformed_request', path)
    isProblem(t, await get(path), 'malformed_request', `${path} without a token`)
  }
})

/** Makes a policy fail on every row, as an operator could by mistake. */
async function breakPolicy(policy: string, table: string): Promise<() => Promise<unknown>> {
  const set = (rule: string) =>
    sql.raw(`alter policy ${policy} on ${table} using (${rule})`).execute(db)
  const { rows } = await sql<{ rule: string }>`
    select pg_get_expr(polqual, polrelid) as rule from pg_policy
    where polname = ${policy} and polrelid = ${table}::regclass`.execute(db)
  await set('connection_id / 0 = 1')
  return () => set(String(rows[0]?.rule))
}

t.test(
  '500: a fixed detail; the cause is logged once with the request id (contract 19)',
  async (t) => {
    t.equal((await get(connection.portfolio, { token })).status, 200)
    const before = log.length
    const repair = await breakPolicy('of_the_connection', 'portfolio_transaction')
    const first = await get(connection.portfolio, { token })
    const second = await get(connection.portfolio, { token })
    t.equal((await get(connection.account, { token })).status, 200, 'other endpoints still work')
    await repair()

    for (const response of [first, second]) {
      const { requestId, detail } = isProblem(t, response, 'internal_error')
      t.equal(detail, 'The service failed. Report the requestId to its operator.')
      const lines = log.slice(before).filter((line) => line.includes(requestId))
      const causes = lines.filter((line) => line.includes('division by zero'))
      t.equal(causes.length, 1, 'the cause, once')
      const err = { code: '22012' }
      t.match(JSON.parse(String(causes[0])), { level: 50, msg: 'request failed', requestId, err })
      t.equal(lines.length, 2, 'the cause and the line of the request')
      t.notMatch(
        response.text,
        /division|policy|connection_id|22012|\.ts/,
        'the response reveals no cause',
      )
    }
    for (const secret of [token, connection.token, 'a private matter']) {
      t.notOk(
        log.some((line) => line.includes(secret)),
        'nothing secret in the log',
      )
    }
    t.equal((await get(connection.portfolio, { token })).status, 200, 'recovers without a restart')
  },
)

t.test('500: the same on all three endpoints (contract 19)', async (t) => {
  const tables = {
    portfolio: lists.portfolio.table,
    account: lists.account.table,
    orders: 'assets_transfer_order',
  } as const
  await lists.account.add(db, connection, {})
  await addTransferOrders(db, connection, {})
  for (const endpoint of ['portfolio', 'account', 'orders'] as const) {
    const repair = await breakPolicy('of_the_connection', tables[endpoint])
    isProblem(t, await get(connection[endpoint], { token }), 'internal_error', endpoint)
    await repair()
  }
})

t.test('503: the reason and its cause are logged once with the request id (contract 19)', (t) =>
  duringOutage(t, databaseUrl, async () => {
    const before = log.length
    const response = await get(connection.orders, { token })
    const { requestId } = isProblem(t, response, 'service_unavailable')
    t.equal(response.headers.get('retry-after'), '1')
    const lines = log.slice(before).map((line) => JSON.parse(line))
    const [line, ...more] = lines.filter((each) => each.requestId === requestId && each.level > 30)
    t.match(line, { level: 40, msg: 'request could not be served', reason: /database/ })
    t.match(line.cause, /not currently accepting connections/)
    const request = lines.find((each) => each.requestId === requestId && each.level === 30)
    t.match(request, { msg: 'request', unavailableReason: 'database' })
    t.same(more, [])
  }),
)

const others = METHODS.filter((method) => method !== 'GET' && method !== 'HEAD')

t.test('405 with Allow: every method but GET and HEAD (contract 7)', async (t) => {
  for (const path of [...endpoints, '/health/live', '/health/ready', '/openapi.json', '/nothing']) {
    for (const method of others) {
      const bytes = `${method} ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
      const [response] = (await sendRaw({ port, bytes })).responses
      if (!response) throw new Error(`no response to ${method}`)
      isProblem(t, response, 'method_not_allowed', method)
      t.equal(response.headers.get('allow'), 'GET, HEAD')
    }
  }
})

t.test('405: with any credentials, parameters and connection (contract 1, 7)', async (t) => {
  const unknown = connection.orders.replace(connection.token, 'nobody-has-this')
  for (const path of [...endpoints, unknown, `${connection.orders}?limit=x`]) {
    for (const options of [{}, { token }, { token: 'x' }, { headers: { authorization: 'x' } }]) {
      const response = await get(path, { ...options, method: 'POST' })
      isProblem(t, response, 'method_not_allowed')
      t.equal(response.headers.get('www-authenticate'), null)
    }
  }
})

t.test('405: without reading the body (contract 7)', async (t) => {
  const head = `PUT ${connection.orders} HTTP/1.1\r\nHost: x\r\n`
  const bodies = [
    'Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{x}',
    'Content-Type: \xff\r\nContent-Length: 1\r\n\r\nx',
    // The client never sends the rest.
    'Content-Length: 1000000000\r\n\r\nx',
    'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n',
  ]
  for (const body of bodies) {
    const [response] = (await sendRaw({ port, bytes: head + body })).responses
    if (!response) throw new Error('no response')
    isProblem(t, response, 'method_not_allowed')
  }
})

t.test('HEAD: the response of GET without the body (contract 7)', async (t) => {
  const noCredentials = endpoints.map((path) => [path, {}] as const)
  const invalid = endpoints.map((path) => [`${path}?x=1`, { token }] as const)
  const valid = [...endpoints, '/health/live', '/nothing'].map((path) => [path, { token }] as const)
  const headers = { 'if-none-match': '*' }
  const unmodified = endpoints.map((path) => [path, { token, headers }] as const)
  for (const [path, options] of [...valid, ...invalid, ...noCredentials, ...unmodified]) {
    const full = await get(path, options)
    const head = await get(path, { ...options, method: 'HEAD' })
    t.equal(head.status, full.status)
    t.equal(head.text, '')
    // fetch() closes its connection after HEAD.
    const headersOf = ({ headers }: typeof full) =>
      [...headers].filter(
        ([name]) => !['x-request-id', 'date', 'connection', 'keep-alive'].includes(name),
      )
    t.strictSame(headersOf(head), headersOf(full), path.replace(connection.token, ':token'))
  }
})

t.test('HEAD of a response that GET compresses: no other length than that of GET', async (t) => {
  for (const size of [1_000, 10_000, 20_000]) {
    const description = 'x'.repeat(size / 2)
    const { token, connection } = await addCaller(db)
    await addPortfolioTransactions(db, connection, { description }, { description })
    for (const encoding of ['gzip', 'br', 'zstd', 'x-gzip', 'identity']) {
      const options = { token, headers: { 'accept-encoding': encoding } }
      const full = await get(connection.portfolio, options)
      const head = await get(connection.portfolio, { ...options, method: 'HEAD' })
      const lengths = [null, full.headers.get('content-length')]
      t.ok(lengths.includes(head.headers.get('content-length')), `${size} bytes, ${encoding}`)
    }
  }
})

const unknown = Object.values(addresses('nobody-has-this'))

t.test('401: comes before 400 and 404 (contract 1)', async (t) => {
  for (const path of [...endpoints, ...unknown]) {
    const faulty = `${path}?limit=1e3&nonsense=1`
    isProblem(t, await get(faulty), 'missing_credentials')
    isProblem(t, await get(faulty, { headers: { authorization: 'x' } }), 'malformed_credentials')
    isProblem(t, await get(faulty, { token: 'x' }), 'invalid_token')
    isProblem(t, await get(faulty, { token: revoked }), 'invalid_token')
    isProblem(t, await get(faulty, { token: expired }), 'expired_token')
  }
})

t.test('401: the same for an existing and an unknown connection (contract 1)', async (t) => {
  for (const options of [{}, { token: 'x' }, { token: revoked }, { token: expired }]) {
    for (const [i, path] of endpoints.entries()) {
      const [here, there] = [await get(path, options), await get(String(unknown[i]), options)]
      const same = (text: string) => text.replace(/"requestId":"[^"]+"/, '')
      t.equal(same(here.text), same(there.text))
    }
  }
})

t.test('401: a token that was revoked between two requests', async (t) => {
  const revoke = (token: string) =>
    db
      .updateTable('app_token')
      .set({ revoked_at: new Date() })
      .where('token_hash', '=', tokenHash(token))
      .execute()
  const revoked = await addToken(db, appId)
  t.equal((await get(connection.orders, { token: revoked })).status, 200)
  await revoke(revoked)
  const faulty = `${connection.orders}?x=1`
  isProblem(t, await get(faulty, { token: revoked }), 'invalid_token')
  const next = await addToken(db, appId)
  t.equal((await get(connection.orders, { token: next })).status, 200)
  await revoke(next)
  for (const path of endpoints) {
    isProblem(t, await get(path, { token: next }), 'invalid_token')
    isProblem(t, await get(`${path}?x=1`, { token: next }), 'invalid_token')
  }
})

t.test('400: comes before 404 (contract 1)', async (t) => {
  for (const path of unknown) {
    isProblem(t, await get(`${path}?nonsense=1`, { token }), 'invalid_request')
    isProblem(t, await get(path, { token }), 'connection_not_found')
  }
})

t.test('400, 401 and 404: come before 304 (contract 1 and 24)', async (t) => {
  const headers = { 'if-none-match': '*' }
  t.equal((await get(connection.orders, { token, headers })).status, 304)
  isProblem(t, await get(connection.orders, { token: expired, headers }), 'expired_token')
  isProblem(t, await get(`${connection.orders}?x=1`, { token, headers }), 'invalid_request')
  isProblem(t, await get(String(unknown[2]), { token, headers }), 'connection_not_found')
})
