import zlib, { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fastify from 'fastify'
import t from 'tap'
import { memoryFile } from '../../src/http/memory-file.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addAccountTransactions, addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, port } = await startService(t)
const { token, connection } = await addCaller(db)

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** One request for each type of response. */
const requests = [
  [connection.portfolio, { token }],
  [connection.orders, { token }],
  [connection.orders, { token, headers: { 'if-none-match': '*' } }],
  [connection.orders, { token, method: 'HEAD' }],
  [connection.orders, { token, method: 'POST' }],
  [connection.orders, {}],
  [`${connection.orders}?x`, { token }],
  [`${connection.orders}/x`, { token }],
  ['/%ff', { token }],
  ['/health/live', {}],
  ['/health/ready', {}],
  ['/openapi.json', {}],
] as const

t.test('X-Request-ID: new in every response of any status (contract 22)', async (t) => {
  const seen = new Set<string>()
  for (const [path, options] of [...requests, ...requests]) {
    const id = String((await get(path, options)).headers.get('x-request-id'))
    t.match(id, UUID, path.replace(connection.token, ':token'))
    seen.add(id)
  }
  t.equal(seen.size, 2 * requests.length)
})

t.test('other than 304: no referrer, no type sniffing, no active content', async (t) => {
  const names = [
    'content-security-policy',
    'cross-origin-resource-policy',
    'referrer-policy',
    'x-content-type-options',
  ]
  const values = [
    "default-src 'none'; frame-ancestors 'none'",
    'same-origin',
    'no-referrer',
    'nosniff',
  ]
  for (const [path, options] of requests) {
    const { headers, status } = await get(path, options)
    t.same(
      names.map((name) => headers.get(name)),
      // The client has stored them with the 200.
      status === 304 ? [null, null, null, null] : values,
      path,
    )
  }
  const { responses } = await sendRaw({ port, bytes: 'GET / HTTP/9.9\r\n\r\n' })
  t.same(
    names.map((name) => responses[0]?.headers.get(name)),
    values,
    'malformed request',
  )
  t.equal((await get('/docs')).headers.get('referrer-policy'), 'no-referrer')
})

t.test('X-Request-ID in the request: ignored (contract 22)', async (t) => {
  const id = '11111111-1111-4111-8111-111111111111'
  const headers = { 'x-request-id': id, 'request-id': id, 'x-correlation-id': id }
  const response = await get(connection.orders, { token, headers })
  t.match(response.headers.get('x-request-id'), UUID)
  t.not(response.headers.get('x-request-id'), id)
})

t.test('X-Client-Trace-ID: returned in every response (contract 22)', async (t) => {
  for (const [path, options] of requests) {
    const headers = { ...('headers' in options ? options.headers : {}), 'x-client-trace-id': 'a-1' }
    const response = await get(path, { ...options, headers })
    t.equal(response.headers.get('x-client-trace-id'), 'a-1', path)
  }
})

t.test(
  'X-Client-Trace-ID: up to 128 visible ASCII characters, else ignored (contract 22)',
  async (t) => {
    const echo = async (value: string) => {
      const fields = `Host: x\r\nAuthorization: Bearer ${token}\r\nX-Client-Trace-ID: ${value}\r\n`
      const { responses } = await sendRaw({
        port,
        bytes: `GET ${connection.orders} HTTP/1.1\r\n${fields}\r\n`,
      })
      t.equal(responses[0]?.status, 200, 'an invalid value does not reject the request')
      return responses[0]?.headers.get('x-client-trace-id')
    }
    const visible = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join('')
    for (const value of ['x', visible, 'y'.repeat(128), '<script>'])
      t.equal(await echo(value), value)
    for (const value of ['', 'y'.repeat(129), 'two words', 'a\tb', 'caf\xe9', '\x80']) {
      t.equal(await echo(value), undefined)
    }
    t.equal(await echo('a\r\nX-Client-Trace-ID: b'), undefined, 'a repeated header is ignored')
  },
)

t.test('CORS: no response allows another origin', async (t) => {
  const preflight = { 'access-control-request-method': 'GET' }
  for (const [path, options] of requests) {
    for (const method of ['GET', 'OPTIONS']) {
      const headers = { origin: 'https://example.org', ...(method === 'OPTIONS' ? preflight : {}) }
      const response = await get(path, { ...options, method, headers })
      const names = [...response.headers.keys()].filter((name) =>
        name.startsWith('access-control-'),
      )
      t.strictSame(names, [], `${method} ${path.replace(connection.token, ':token')}`)
      if (method === 'OPTIONS') t.notOk(response.status < 400)
    }
  }
})

t.test('compressed response: zstd, then br, then gzip, as the client accepts', async (t) => {
  // 100 rows exceed the size up to which a response is compressed synchronously.
  for (const rows of [20, 100]) {
    const caller = await addCaller(db)
    await addAccountTransactions(db, caller.connection, ...Array(rows).fill({}))
    const headers = { 'accept-encoding': 'identity' }
    const plain = await get(caller.connection.account, { token: caller.token, headers })
    t.equal(plain.headers.get('content-encoding'), null)
    const { constants } = zlib
    const lowest = {
      zstd: zlib.zstdCompressSync(plain.text, {
        params: { [constants.ZSTD_c_compressionLevel]: 1 },
      }),
      br: zlib.brotliCompressSync(plain.text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
      gzip: zlib.gzipSync(plain.text, { level: 1 }),
    }
    for (const [accepted, used] of [
      ['gzip, br, zstd', 'zstd'],
      ['gzip, br', 'br'],
      ['GZIP', 'gzip'],
      ['*', 'gzip'],
      ['*;q=0.5', 'gzip'],
      ['zstd;q=0.1, *', 'gzip'],
      ['br, *;q=0.1', 'br'],
    ] as const) {
      const headers = { 'accept-encoding': accepted }
      const response = await get(caller.connection.account, { token: caller.token, headers })
      t.equal(response.headers.get('content-encoding'), used)
      t.equal(response.headers.get('vary'), 'accept, accept-encoding')
      const length = Number(response.headers.get('content-length'))
      t.ok(length > 0, 'no stream')
      // Asynchronous functions of zlib may choose other blocks.
      if (rows === 20) t.equal(length, lowest[used].length, 'the lowest level')
    }
  }
})

t.test('compressed page /docs: gzip for a client that accepts any encoding', async (t) => {
  for (const path of ['/docs', '/openapi.json']) {
    const { headers } = await get(path, { headers: { 'accept-encoding': '*' } })
    t.equal(headers.get('content-encoding'), 'gzip', path)
  }
})

t.test('200 without compression: `gzip` is excluded from any encoding', async (t) => {
  const headers = { 'accept-encoding': 'gzip;q=0, *' }
  t.equal((await get('/docs', { headers })).headers.get('content-encoding'), null)
})

t.test('304: an ETag to which a proxy has appended its encoding', async (t) => {
  const caller = await addCaller(db)
  for (const path of [caller.connection.account, '/docs', '/openapi.json']) {
    const { token } = caller
    const tag = String((await get(path, { token })).headers.get('etag'))
    for (const suffix of ['', '-gzip', '--gzip', ';gzip', '-br', '-zstd']) {
      const known = tag.replace(/"$/, `${suffix}"`)
      const { status } = await get(path, { token, headers: { 'if-none-match': known } })
      t.equal(status, 304, `${path.slice(0, 9)} ${suffix}`)
    }
    const other = tag.replace(/"$/, 'x"')
    const { status } = await get(path, { token, headers: { 'if-none-match': other } })
    t.equal(status, 200, 'another tag')
  }
})

const TEXT = 'a file '.repeat(1_000)
let reads = 0
const app = fastify()
app.get(
  '/file',
  memoryFile('text/plain', () => {
    reads += 1
    return TEXT
  }),
)
const getFile = (headers: Record<string, string> = {}) => app.inject({ url: '/file', headers })

t.test('200: the encoding that the client prefers, from one read of the file', async (t) => {
  const responses = await Promise.all([
    ...[getFile({ 'accept-encoding': 'gzip, br' }), getFile({ 'accept-encoding': 'gzip' })],
    ...[getFile({ 'accept-encoding': 'zstd, br;q=0' }), getFile()],
  ])
  t.same(
    responses.map(({ headers }) => headers['content-encoding']),
    ['br', 'gzip', undefined, undefined],
  )
  const [br, gzip, other, none] = responses.map(({ rawPayload }) => rawPayload)
  t.equal(String(brotliDecompressSync(br as Buffer)), TEXT)
  t.equal(String(gunzipSync(gzip as Buffer)), TEXT)
  t.same([String(other), String(none)], [TEXT, TEXT])
  for (const { headers } of responses) {
    t.match(headers, { vary: 'accept-encoding', 'cache-control': 'no-cache' })
    t.match(headers['content-type'], /^text\/plain/)
  }
  t.equal(new Set(responses.map(({ headers }) => headers.etag)).size, 1)
  await getFile()
  t.equal(reads, 1)
})

t.test('500 only while the file cannot be made', async (t) => {
  let fails = true
  const app = fastify()
  const file = memoryFile('text/plain', () => {
    if (fails) throw new Error('not yet')
    return TEXT
  })
  app.get('/file', file)
  t.equal((await app.inject('/file')).statusCode, 500)
  fails = false
  t.equal((await app.inject('/file')).statusCode, 200)
})

t.test('304: the ETag in its strong or weak form, or *', async (t) => {
  const etag = String((await getFile()).headers.etag)
  t.match(etag, /^W\/"[\w-]{22}"$/)
  for (const known of [etag, etag.slice(2), `"a", ${etag}`, '*']) {
    const { statusCode, body } = await getFile({ 'if-none-match': known })
    t.same([statusCode, body], [304, ''])
  }
  for (const other of ['"*"', '"a"', '']) {
    t.equal((await getFile({ 'if-none-match': other })).statusCode, 200)
  }
})
