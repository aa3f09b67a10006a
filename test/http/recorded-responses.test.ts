import { hash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import t from 'tap'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

/**
 * Compares responses to requests without newer features with those of commit 2f72eb7, before the change
 * feed. `RECORD=true` writes the file: run this test with it in a checkout of that commit.
 */
const FILE = new URL('recorded-responses.ndjson', import.meta.url)

interface Recorded {
  /** Sets of headers, in the order of the response. */
  headers: string[]
  /** By request: status, length, index of the headers, and SHA-256 of the body. */
  responses: Record<string, [number, string | null, number, string]>
}

/** Reads the sets of headers from the first line, and a response from each other one. */
async function readRecorded(): Promise<Recorded> {
  const [headers, ...responses] = (await readFile(FILE, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { headers, responses: Object.fromEntries(responses) }
}

function writeRecorded({ headers, responses }: Recorded): Promise<void> {
  const lines = [headers, ...Object.entries(responses)].map((line) => JSON.stringify(line))
  return writeFile(FILE, `${lines.join('\n')}\n`)
}

const { port } = await startSeededService(t)
const agent = new Agent({ keepAlive: true })
t.teardown(() => agent.destroy())

type Headers = Record<string, string>

async function send(method: string, path: string, headers: Headers) {
  const sent = request({ agent, port, host: '127.0.0.1', method, path, headers })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject).end()
  })
  return { response, body: await buffer(response) }
}

/**
 * Headers of the time and of the request, one that is new, and the framing: a compressed page now has a
 * Content-Length instead of chunks.
 */
const EXCEPTED = [
  'date',
  'x-request-id',
  'etag',
  'last-modified',
  'data-version',
  'data-refreshed',
  'content-length',
  'transfer-encoding',
]

const DECODERS: Record<string, (body: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: zstdDecompressSync,
}

async function record(method: string, path: string, headers: Headers) {
  const { response, body } = await send(method, path, headers)
  const { 'content-encoding': encoding, 'content-length': length } = response.headers
  const pairs = response.rawHeaders.flatMap((name, index, all) =>
    index % 2 === 0 ? [[name.toLowerCase(), all[index + 1]]] : [],
  )
  const kept = pairs.filter(([name = '']) => !EXCEPTED.includes(name))
  const tagged = response.headers.etag === undefined ? '' : ' etag'
  const text = (DECODERS[String(encoding)]?.(body) ?? body).toString()
  const lawful = text
    .replace(/"requestId":"[^"]+"/, '"requestId":""')
    // Newer parameters are in this list.
    .replaceAll('from, to, limit, page, since, version.', 'from, to, limit, page.')
  return {
    status: response.statusCode ?? 0,
    // The length of compressed bytes depends on the version of zlib, that of an error on the list.
    length: encoding || lawful !== text ? null : (length ?? null),
    headers: kept.map(([name, value]) => `${name}: ${value}`).join('\n') + tagged,
    body: hash('sha256', lawful, 'base64url').slice(0, 22),
  }
}

const QUERIES = [
  ...['', 'limit=3', 'limit=10000', 'limit=7&page=2', 'page=999', 'limit=1&page=2147483647'],
  ...['from=2024-01-01', 'to=2023-12-31', 'from=2024-01-01&to=2024-12-31&limit=50&page=1'],
  ...['limit=0', 'limit=10001', 'limit=x', 'limit=1&limit=2', 'page=-1', 'page=2147483648'],
  ...['from=2025-02-30', 'from=2025-01-02&to=2025-01-01', 'form=2025-01-01', 'offset=1&limit=0'],
]

const VARIANTS: [method: string, headers: Headers][] = [
  ...['HEAD', 'POST', 'DELETE', 'OPTIONS'].map((method): [string, Headers] => [method, {}]),
  ...['*/*', 'application/json', 'application/json, text/plain, */*', 'image/png', 'a;;,"']
    .concat('text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8')
    .map((accept): [string, Headers] => ['GET', { accept }]),
  ...['gzip', 'br', 'zstd', 'gzip, br, zstd', 'identity'].map((encoding): [string, Headers] => [
    'GET',
    { 'accept-encoding': encoding },
  ]),
  ['GET', { 'if-none-match': '"x"' }],
  ['GET', { 'if-none-match': '*' }],
  ['HEAD', { 'if-none-match': '*' }],
  ['GET', { 'x-client-trace-id': 'a-1' }],
  ['GET', { authorization: '' }],
  ['GET', { authorization: 'Bearer unknown' }],
  ['GET', { authorization: 'Basic x' }],
]

const PREFIX = '/api/v1/queries/connections/'

function* requests(): Generator<[method: string, path: string, headers: Headers]> {
  for (const token of ['DEMOLARGE1', 'DEMOSMALL1', 'DEMOEMPTY1', 'DEMOOTHER1', 'NONE', '%ff']) {
    const connection = `${PREFIX}${token}`
    for (const list of ['portfolios/transactions', 'accounts/transactions', 'assets-transfer']) {
      for (const query of QUERIES)
        yield ['GET', `${connection}/${list}${query ? `?${query}` : ''}`, {}]
      const path = `${connection}/${list}${list === 'assets-transfer' ? '' : '?limit=50'}`
      for (const [method, headers] of VARIANTS) yield [method, path, headers]
    }
  }
  for (const path of ['/api/v1/queries', '/health/live', '/health/ready', '/%ff'])
    for (const method of ['GET', 'HEAD', 'POST']) yield [method, path, {}]
}

t.test('requests without newer features: the recorded responses', async (t) => {
  const recorded = await readRecorded()
  const now: Recorded = { headers: [], responses: {} }
  for (const [method, path, headers] of requests()) {
    const name = [method, path, ...Object.entries(headers).flat()].join(' ').replace(PREFIX, '')
    const sent = { authorization: `Bearer ${DEMO_TOKEN}`, ...headers }
    const response = await record(method, path, sent)
    if (!now.headers.includes(response.headers)) now.headers.push(response.headers)
    const index = now.headers.indexOf(response.headers)
    now.responses[name] = [response.status, response.length, index, response.body]
    if (process.env.RECORD) continue
    const [status, length, oldIndex, body] = recorded.responses[name] ?? []
    t.strictSame(
      response,
      { status, length, headers: recorded.headers[Number(oldIndex)], body },
      name,
    )
  }
  if (process.env.RECORD) await writeRecorded(now)
  t.equal(Object.keys(now.responses).length, Object.keys(recorded.responses).length)
})
