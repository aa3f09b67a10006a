import { METHODS } from 'node:http'
import t from 'tap'
import { isProblem } from '../support/problem.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, port } = await startService(t)
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {}, {})
const endpoints = [connection.portfolio, connection.account, connection.orders]
const others = METHODS.filter((method) => method !== 'GET' && method !== 'HEAD')

t.test('405 with Allow: every method but GET and HEAD (contract 7)', async (t) => {
  for (const path of [...endpoints, '/health/live', '/health/ready', '/openapi.json']) {
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

t.test('404: another method of an unknown path (contract 7)', async (t) => {
  for (const method of ['POST', 'OPTIONS', 'PURGE']) {
    isProblem(t, await get('/nothing', { method }), 'route_not_found')
  }
})

t.test('400: QUERY without a Content-Type, which Fastify itself rejects (RFC 10008)', async (t) => {
  isProblem(t, await get('/nothing', { method: 'QUERY' }), 'malformed_request')
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
