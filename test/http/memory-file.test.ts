import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import fastify from 'fastify'
import t from 'tap'
import { memoryFile } from '../../src/http/memory-file.ts'

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
const get = (headers: Record<string, string> = {}) => app.inject({ url: '/file', headers })

t.test('200: the encoding that the client prefers, from one read of the file', async (t) => {
  const responses = await Promise.all([
    ...[get({ 'accept-encoding': 'gzip, br' }), get({ 'accept-encoding': 'gzip' })],
    ...[get({ 'accept-encoding': 'zstd, br;q=0' }), get()],
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
  await get()
  t.equal(reads, 1)
})

t.test('500 only while the file cannot be made', async (t) => {
  let fails = true
  const app = fastify()
  const file = memoryFile('text/plain', async () => {
    if (fails) throw new Error('not yet')
    return TEXT
  })
  app.get('/file', file)
  t.equal((await app.inject('/file')).statusCode, 500)
  fails = false
  t.equal((await app.inject('/file')).statusCode, 200)
})

t.test('304: the ETag in its strong or weak form, or *', async (t) => {
  const etag = String((await get()).headers.etag)
  t.match(etag, /^W\/"[\w-]{22}"$/)
  for (const known of [etag, etag.slice(2), `"a", ${etag}`, '*']) {
    const { statusCode, body } = await get({ 'if-none-match': known })
    t.same([statusCode, body], [304, ''])
  }
  for (const other of ['"*"', '"a"', '']) {
    t.equal((await get({ 'if-none-match': other })).statusCode, 200)
  }
})
