import type { Random } from '../../seeds/random.ts'
import { DEMO } from '../../seeds/sample-data.ts'

export interface ServiceRequest {
  method: string
  /** Path and query string. */
  target: string
  /** Names and values in turn, so that a header may be sent twice. */
  headers: string[]
}

/** What an earlier response gave to a client. Later requests send it again, also where it does not belong. */
export interface Learned {
  /** Path and query string of the request. */
  target: string
  accept: string | undefined
  etag: string
  version: string
  cursor: string | undefined
}

/** It has expired: a cursor had no version in release 1.0.0. */
const CURSOR_OF_1_0_0 = 'A'.repeat(27)

/** Token that the run adds to the sample data. */
export const REVOKED_TOKEN = 'idq_revoked_this_token_is_public'

const { wealth, tax } = DEMO
const CONNECTIONS = [
  ...Object.values(wealth.connections).map(({ token }) => token),
  ...Object.values(tax.connections).map(({ token }) => token),
]

const LISTS = ['portfolios/transactions', 'accounts/transactions', 'assets-transfer']

const OTHER_PATHS = [
  '/',
  '/docs',
  '/docs/json',
  '/docs/static/page.js',
  '/openapi.json',
  '/health/live',
  '/api/v1/queries/connections',
  '/api/v1/queries/connections/DEMOSMALL1',
  '/api/v1/queries/connections/DEMOSMALL1/assets-transfer/',
  '/api/v1/queries/connections/%ff/assets-transfer',
  '/api/v1/queries/connections//assets-transfer',
  '/API/v1/queries/connections/DEMOSMALL1/assets-transfer',
  '/api/v1/queries/connections/DEMOSMALL1/portfolios/transactions;x=1',
]

const OTHER_CONNECTIONS = [
  'unknown',
  'demosmall1',
  'DEMOSMALL1%00',
  'DEMOSMALL1%20',
  '%44EMOSMALL1',
  '%F0%9F%98%80',
  'a'.repeat(3_000),
]

const METHODS = ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'QUERY']

const DAYS = [
  '2016-01-04',
  '2024-02-29',
  '2025-01-01',
  '2025-01-31',
  '2025-06-15',
  '2025-12-30',
  '2025-12-31',
  '0001-01-01',
  '9999-12-31',
]

/** Values that no parameter accepts, and values that only look wrong. */
const ODD_VALUES = [
  '',
  '%20',
  '%00',
  '%ff',
  '%zz',
  '+1',
  '-1',
  '1.0',
  '1e3',
  '0x10',
  '00',
  '0000001',
  '%D9%A1',
  '2501',
  '10001',
  '2147483647',
  '2147483648',
  '9'.repeat(400),
  'null',
  'true',
  '2025-02-29',
  '2025-02-30',
  '1900-02-29',
  '0000-01-01',
  '2025-13-01',
  '2025-1-1',
  '2025-01-01Z',
  '2025-01-01%0A',
  '%202025-01-01',
  'infinity',
  'start',
  'START',
  '0.0',
  '1.1',
  '1.',
  CURSOR_OF_1_0_0,
  'A'.repeat(40),
  '%F0%9F%98%80',
]

const NAMES = ['from', 'to', 'limit', 'page', 'since', 'version']
const ODD_NAMES = [
  'form',
  'Limit',
  'limit[]',
  'limit%20',
  'offset',
  'token',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  '%00',
  'l%69mit',
  '%F0%9F%98%80',
]

const MEDIA_RANGES = [
  '*/*',
  'application/*',
  'application/json',
  'application/json;IEEE754Compatible=true',
  'application/json; ieee754compatible="true"',
  'application/json;IEEE754Compatible=false',
  'application/x-ndjson',
  'application/x-ndjson;IEEE754Compatible=true',
  'text/csv',
  'text/csv;q=0.5, application/x-ndjson;q=0.7',
  'text/csv;q=0, application/json',
  'text/*',
  'text/html,application/xhtml+xml,*/*;q=0.8',
  'image/png',
  'text/csv;q=2',
  'nonsense',
  ',',
]

const ENCODINGS = ['gzip', 'br', 'zstd', 'identity', '*', 'gzip;q=0, br', 'deflate']

const TRACES = ['sync-2025-03-14-0042', 'a b', 'x'.repeat(128), 'x'.repeat(200), '', '\u00e9']

/** Makes a request of a client: most are valid, and each of the others has few faults. */
export function randomRequest(random: Random, learned: Learned[]): ServiceRequest {
  const newest = learned.slice(-300)
  const earlier = newest.length > 0 ? random.oneOf(newest) : undefined
  if (earlier !== undefined && random.chance(25)) return laterRequest(random, earlier)
  const list = random.oneOf(LISTS)
  const connection = random.chance(92) ? random.oneOf(CONNECTIONS) : random.oneOf(OTHER_CONNECTIONS)
  const path = random.chance(97)
    ? `/api/v1/queries/connections/${connection}/${list}`
    : random.oneOf(OTHER_PATHS)
  const hasParameters = list !== 'assets-transfer' || random.chance(20)
  const query = hasParameters ? queryOf(random, earlier) : ''
  return {
    method: methodOf(random),
    target: query === '' ? path : `${path}?${query}`,
    headers: headersOf(random, earlier),
  }
}

/** Makes the request that follows a response: the same one with its tag, the next page, or the next changes. */
function laterRequest(random: Random, earlier: Learned): ServiceRequest {
  const { target, accept, etag, version, cursor } = earlier
  const [path = ''] = target.split('?')
  const headers = [...address(random), 'Authorization', `Bearer ${wealth.token}`]
  if (accept !== undefined && random.chance(80)) headers.push('Accept', accept)
  if (random.chance(40)) headers.push('If-None-Match', etag)
  const method = random.chance(90) ? 'GET' : 'HEAD'
  const kind = random.between(1, 3)
  if (kind === 1 && cursor !== undefined)
    return { method, target: `${path}?since=${cursor}&limit=${random.between(1, 20)}`, headers }
  if (kind === 2 && !path.endsWith('assets-transfer'))
    return { method, target: `${path}?page=${random.between(0, 3)}&version=${version}`, headers }
  return { method, target, headers }
}

function methodOf(random: Random): string {
  if (random.chance(88)) return 'GET'
  if (random.chance(80)) return 'HEAD'
  return random.oneOf(METHODS)
}

function queryOf(random: Random, earlier: Learned | undefined): string {
  const kind = random.between(1, 100)
  if (kind <= 15) return ''
  if (kind <= 50) return validPage(random, earlier)
  if (kind <= 65) return validChanges(random, earlier)
  if (kind <= 75) return `${validPage(random, earlier)}&${oddPair(random, earlier)}`
  if (kind <= 80) return `${validChanges(random, earlier)}&${oddPair(random, earlier)}`
  if (kind <= 83) return manyPairs(random)
  const pairs = Array.from({ length: random.between(1, 4) }, () => oddPair(random, earlier))
  return pairs.join('&')
}

function validPage(random: Random, earlier: Learned | undefined): string {
  const pairs: string[] = []
  if (random.chance(50)) pairs.push(`from=${random.oneOf(DAYS)}`)
  if (random.chance(50)) pairs.push(`to=${random.oneOf(DAYS)}`)
  if (random.chance(70))
    pairs.push(`limit=${random.oneOf(['1', '2', '7', '100', '1000', '10000'])}`)
  if (random.chance(50)) pairs.push(`page=${random.oneOf(['0', '1', '2', '5', '500'])}`)
  if (random.chance(10)) pairs.push(`version=${earlier?.version ?? '0.0'}`)
  return pairs.join('&')
}

function validChanges(random: Random, earlier: Learned | undefined): string {
  const given = random.chance(70) ? 'start' : (earlier?.cursor ?? 'start')
  const since = random.chance(5) ? CURSOR_OF_1_0_0 : given
  const limit = random.chance(60) ? `&limit=${random.oneOf(['1', '3', '50', '5000'])}` : ''
  return `since=${since}${limit}`
}

function oddPair(random: Random, earlier: Learned | undefined): string {
  const name = random.chance(80) ? random.oneOf(NAMES) : random.oneOf(ODD_NAMES)
  const values = [
    random.oneOf(ODD_VALUES),
    random.oneOf(DAYS),
    String(random.between(0, 12)),
    earlier?.cursor ?? 'start',
    earlier?.version ?? '0.0',
  ]
  if (random.chance(3)) return name
  return `${name}=${random.oneOf(values)}`
}

/** More errors than a response lists. */
function manyPairs(random: Random): string {
  const pairs = Array.from({ length: random.between(15, 60) }, (_, index) => {
    return random.chance(50) ? `${random.oneOf(NAMES)}=${random.oneOf(ODD_VALUES)}` : `a${index}=1`
  })
  return pairs.join('&')
}

function headersOf(random: Random, earlier: Learned | undefined): string[] {
  const headers = [...address(random), ...credentialsOf(random)]
  if (random.chance(50)) headers.push('Accept', random.oneOf(MEDIA_RANGES))
  if (random.chance(3)) headers.push('Accept', random.oneOf(MEDIA_RANGES))
  if (random.chance(30)) headers.push('Accept-Encoding', random.oneOf(ENCODINGS))
  if (random.chance(30)) headers.push('If-None-Match', knownTags(random, earlier))
  if (random.chance(20)) headers.push('X-Client-Trace-ID', random.oneOf(TRACES))
  if (random.chance(2)) headers.push('X-Client-Trace-ID', random.oneOf(TRACES))
  if (random.chance(1)) headers.push('Content-Length', '0')
  return headers
}

/** Repeated rejections of one address wait. Each request comes from another one. */
function address(random: Random): string[] {
  const parts = [10, ...[0, 0, 0].map(() => random.between(0, 255))]
  return ['Host', 'service', 'X-Forwarded-For', parts.join('.')]
}

function credentialsOf(random: Random): string[] {
  const kind = random.between(1, 100)
  if (kind <= 82) return ['Authorization', `Bearer ${wealth.token}`]
  if (kind <= 88) return ['Authorization', `bearer  ${tax.token}`]
  if (kind <= 90) return []
  const others = [
    `Bearer ${wealth.expiredToken}`,
    `Bearer ${REVOKED_TOKEN}`,
    'Bearer unknown',
    'Bearer',
    'Basic YTpi',
    `Bearer ${wealth.token} ${wealth.token}`,
    'Bearer a.b.c',
    '',
  ]
  const values = [random.oneOf(others)]
  if (random.chance(10)) values.push(`Bearer ${wealth.token}`)
  return values.flatMap((value) => ['Authorization', value])
}

function knownTags(random: Random, earlier: Learned | undefined): string {
  const tag = earlier?.etag ?? 'W/"1.1-AAAAAAAAAAAAAAAAAAAAAA"'
  const kind = random.between(1, 10)
  if (kind <= 6) return tag
  if (kind === 7) return '*'
  if (kind === 8) return `"a", ${tag}, W/"b"`
  if (kind === 9) return tag.replace('W/', '')
  return 'nonsense'
}
