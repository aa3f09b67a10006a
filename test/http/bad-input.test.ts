import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { badRequests } from '../support/bad-requests.ts'
import { isProblem } from '../support/problem.ts'
import { type RawResponse, sendRaw } from '../support/raw-http.ts'
import { addCaller, addEqualRows } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, log, port, server } = await startService(t)
const caller = await addCaller(db)
const { token, connection } = caller
const good = `GET ${connection.orders} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`

t.test('malformed requests: one response each, with the common error body', async (t) => {
  for (const { name, bytes, expected } of badRequests(caller)) {
    const { responses } = await sendRaw({ port, bytes })
    const [response] = responses
    if (response === undefined) t.fail(`${name}: no response`)
    else if (expected === 200) t.equal(response.status, 200, name)
    else isProblem(t, response, expected, name)
  }
  t.equal((await get(connection.orders, { token })).status, 200, 'the service still works')
})

t.test(
  '400 malformed_request: a request that is incomplete at the timeout, then the connection is closed',
  async (t) => {
    // Not for the other tests: a busy machine may take as long for a whole request.
    const { requestTimeout, headersTimeout } = server
    Object.assign(server, { requestTimeout: 500, headersTimeout: 500 })
    t.teardown(() => Object.assign(server, { requestTimeout, headersTimeout }))
    const [line = '', ...rest] = good.split('\r\n')
    const unfinished = [
      'G',
      line.slice(0, 30),
      `${line}\r\n`,
      good.slice(0, -2),
      // HTTP/0.9.
      `GET ${connection.orders}\r\n`,
      [`${line}\r\n`, ...rest.map((field) => `${field}\r`)],
    ]
    const results = await Promise.all(unfinished.map((bytes) => sendRaw({ port, bytes })))
    for (const { responses } of results) {
      const [response] = responses
      if (response === undefined) t.fail('no response')
      else isProblem(t, response, 'malformed_request')
    }
    const silent = await sendRaw({ port, bytes: [] })
    t.ok(
      silent.closed || silent.responses.length > 0,
      'a silent client does not keep its connection',
    )
  },
)

t.test('disconnect in the middle of a request: no effect on others', async (t) => {
  for (const bytes of ['GET /', good, good.slice(0, -2), `${good}GARBAGE`]) {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(bytes)
    await sleep(1)
    socket.resetAndDestroy()
  }
  for (const bytes of ['', 'GET /', good.slice(0, -2)]) {
    const socket = connect({ port, host: '127.0.0.1' }).resume()
    socket.end(bytes)
    await once(socket, 'close')
  }
  t.equal((await get(connection.orders, { token })).status, 200)
})

t.test(
  'request with a body: a response, and the connection closes before it is read',
  async (t) => {
    const codes = { GET: 'malformed_request', HEAD: undefined, POST: 'method_not_allowed' } as const
    const bodies = { 'Content-Length: 20000000': 'x', 'Transfer-Encoding: chunked': '1\r\nx\r\n' }
    for (const [method, code] of Object.entries(codes)) {
      for (const [length, body] of Object.entries(bodies)) {
        const head = good.replace('GET', method).replace('\r\n\r\n', `\r\n${length}\r\n\r\n`)
        // The client waits for more responses than it can get.
        const { responses, closed } = await sendRaw({ port, bytes: [head, body], responses: 2 })
        t.equal(responses.length, code ? 1 : 0, `${method} with ${length}`)
        if (code) isProblem(t, responses[0] as RawResponse, code)
        t.ok(closed)
      }
    }
    const path = good.replace(connection.orders, '/%zz')
    const head = path.replace('\r\n\r\n', '\r\nContent-Length: 20000000\r\n\r\n')
    for (const type of ['application/json', 'text/plain', 'x/y']) {
      for (const [length, body] of Object.entries(bodies)) {
        const head = `POST /none HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\n${length}\r\n\r\n`
        const { responses, closed } = await sendRaw({ port, bytes: [head, body], responses: 2 })
        isProblem(t, responses[0] as RawResponse, 'method_not_allowed', `POST ${type} to no route`)
        t.ok(closed)
      }
    }
    const undecodable = await sendRaw({ port, bytes: [head, 'x'], responses: 2 })
    isProblem(t, undecodable.responses[0] as RawResponse, 'malformed_request')
    t.ok(undecodable.closed, 'a path that cannot be decoded')
  },
)

t.test('Expect: 100-continue with a body: 400, without 100 before it', async (t) => {
  const lines = 'Expect: 100-continue\r\nContent-Length: 5'
  const head = good.replace('\r\n\r\n', `\r\n${lines}\r\n\r\n`)
  const { responses } = await sendRaw({ port, bytes: [head], responses: 2 })
  t.equal(responses.length, 1)
  isProblem(t, responses[0] as RawResponse, 'malformed_request')
})

t.test('garbage after a valid request: its response is not corrupted', async (t) => {
  const rows = { count: 1_000, description: 'x'.repeat(10_000) }
  await addEqualRows(db, 'account', connection, rows)
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  const { account } = connection
  socket.write(good.replace(connection.orders, `${account}?limit=10000`))
  const [first] = await once(socket, 'data')
  socket.pause()
  // once() would reject at the reset.
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write('GARBAGE\r\n\r\n'.repeat(10))
  await sleep(100)
  const chunks: Buffer[] = [first]
  socket.on('data', (chunk) => chunks.push(chunk)).resume()
  await closed
  const received = Buffer.concat(chunks).toString('latin1')
  t.match(received, /^HTTP\/1\.1 200 /)
  t.equal(received.split('HTTP/1.1 ').length, 2, 'one response, or its beginning')
})

t.test('malformed requests: no 500 and no error in the log', async (t) => {
  t.notOk(log.some((line) => line.includes('"level":50') || line.includes('"status":500')))
})
