import type { ProblemCode } from '../../src/schemas/problem.ts'
import type { Caller } from './rows.ts'

export interface BadRequest {
  name: string
  bytes: string | (string | Buffer)[]
  /** 200, or the code of the expected error. */
  expected: 200 | ProblemCode
}

const BASE = '/api/v1/queries/connections'

/** Requests that a client may send by mistake or on purpose, with valid credentials or without. */
export function badRequests(caller: Caller): BadRequest[] {
  return Object.entries({
    ...addresses(caller),
    ...queries(caller),
    ...credentials(caller),
    ...headers(caller),
    ...bodies(caller),
    ...protocol(caller),
  }).map(([name, [bytes, expected]]) => ({ name, bytes, expected }))
}

type Cases = Record<string, [BadRequest['bytes'], BadRequest['expected']]>

/** Bytes of a GET with valid credentials. */
function get({ token }: Caller, path: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${more}\r\n`
}

function addresses(caller: Caller): Cases {
  const { orders } = caller.connection
  const forToken = (token: string) => get(caller, `${BASE}/${token}/assets-transfer`)
  return {
    'NUL, encoded': [forToken('a%00b'), 'connection_not_found'],
    'NUL, raw': [forToken('a\0b'), 'malformed_request'],
    'percent sign alone': [forToken('%'), 'malformed_request'],
    'percent-encoding of no byte': [forToken('%zz'), 'malformed_request'],
    'percent-encoding of half a byte': [forToken('%4'), 'malformed_request'],
    'not UTF-8': [forToken('%ff'), 'malformed_request'],
    'overlong UTF-8': [forToken('%c0%af'), 'malformed_request'],
    'half a surrogate pair': [forToken('%ed%a0%80'), 'malformed_request'],
    'bytes above ASCII, raw': [forToken('\xc3\xa9'), 'malformed_request'],
    'encoded twice': [forToken('%252e%252e'), 'connection_not_found'],
    'a token of 10 KB': [forToken('a'.repeat(10_240)), 'connection_not_found'],
    'a token of 10 KB, encoded': [forToken('%41'.repeat(3_400)), 'connection_not_found'],
    'an address over the limit': [forToken('a'.repeat(20_000)), 'malformed_request'],
    'no token': [forToken(''), 'connection_not_found'],
    'two dots for a token': [forToken('..'), 'connection_not_found'],
    'dots for a path': [get(caller, '/api/v1/../v1/queries'), 'route_not_found'],
    'encoded slash': [forToken('a%2fb'), 'connection_not_found'],
    'two slashes': [get(caller, `/${orders}`), 'route_not_found'],
    'only slashes': [get(caller, '////'), 'route_not_found'],
    backslashes: [get(caller, orders.replaceAll('/', '\\')), 'malformed_request'],
    'no slash': [get(caller, 'api'), 'malformed_request'],
    'a blank': [get(caller, `${orders} x`), 'malformed_request'],
    'an asterisk': [get(caller, '*'), 'route_not_found'],
    semicolon: [get(caller, `${orders};x=1`), 'route_not_found'],
    fragment: [get(caller, `${orders}#x`), 'invalid_request'],
    'absolute form': [get(caller, `http://x${orders}`), 200],
    'absolute form of another host': [get(caller, `https://example.com${orders}`), 200],
    'absolute form of another scheme': [get(caller, `ftp://x${orders}`), 'route_not_found'],
    'absolute form without a path': [get(caller, 'http://x'), 'route_not_found'],
  }
}

function queries(caller: Caller): Cases {
  const withQuery = (query: string) => get(caller, `${caller.connection.portfolio}?${query}`)
  const faulty: [string, string][] = [
    ['limit with exponent', 'limit=1e3'],
    ['page beyond', 'page=2147483648'],
    ['a day that does not exist', 'from=2025-02-30'],
    ['year 0', 'from=0000-01-01'],
    ['year 10000', 'to=10000-01-01'],
    ['repeated', 'limit=1&limit=2'],
    ['repeated a thousand times', 'page=1&'.repeat(1_000)],
    ['unknown', 'offset=1'],
    ['unknown, thousands of them', Array.from({ length: 2_500 }, (_, i) => `p${i}`).join('&')],
    ['a value that does not decode', 'limit=%zz'],
    ['a name that does not decode', '%ff=1'],
    ['NUL in a value', 'from=2025-01-01%00'],
    ['NUL in a name', 'limit%00=1'],
    ['a value of 10 KB', `limit=${'9'.repeat(10_240)}`],
    ['a prototype', '__proto__=1&constructor=2&__proto__[x]=3'],
    ['brackets', 'limit[]=1&from[x]=2'],
    ['two question marks', '?limit=1'],
    ['nothing before the equals sign', '=1'],
    ['SQL', "from=2025-01-01'%20or%20''='"],
  ]
  return {
    ...Object.fromEntries(
      faulty.map(([name, query]) => [name, [withQuery(query), 'invalid_request']]),
    ),
    'an empty query': [withQuery(''), 200],
    'nothing but ampersands': [withQuery('&&&'), 200],
  }
}

function credentials({ token, connection }: Caller): Cases {
  const withFields = (fields: string) =>
    `GET ${connection.orders} HTTP/1.1\r\nHost: x\r\n${fields}\r\n`
  const one = `Authorization: Bearer ${token}\r\n`
  return {
    'no Authorization': [withFields(''), 'missing_credentials'],
    'two Authorization headers': [withFields(one + one), 'malformed_credentials'],
    'two, one of them empty': [withFields(`${one}Authorization:\r\n`), 'malformed_credentials'],
    'an empty one': [withFields('Authorization:\r\n'), 'malformed_credentials'],
    'two tokens in one': [
      withFields(`Authorization: Bearer ${token} x\r\n`),
      'malformed_credentials',
    ],
    'two with a comma': [
      withFields(`Authorization: Bearer ${token}, Bearer x\r\n`),
      'malformed_credentials',
    ],
    Basic: [withFields(`Authorization: Basic ${token}\r\n`), 'malformed_credentials'],
    'bytes above ASCII': [
      withFields('Authorization: Bearer \xff\xfe\r\n'),
      'malformed_credentials',
    ],
    'a NUL in the token': [withFields('Authorization: Bearer \0\r\n'), 'malformed_request'],
    'a folded header': [withFields(`Authorization: Bearer\r\n ${token}\r\n`), 'malformed_request'],
    'an app token of 10 KB': [
      withFields(`Authorization: Bearer ${'a'.repeat(10_240)}\r\n`),
      'invalid_token',
    ],
    'an app token over the limit': [
      withFields(`Authorization: Bearer ${'a'.repeat(20_000)}\r\n`),
      'malformed_request',
    ],
    'something like a JWT': [withFields('Authorization: Bearer e30.e30.e30\r\n'), 'invalid_token'],
    'for a proxy': [withFields(`Proxy-Authorization: Bearer ${token}\r\n`), 'missing_credentials'],
    'in the query': [
      `GET ${connection.orders}?access_token=${token} HTTP/1.1\r\nHost: x\r\n\r\n`,
      'missing_credentials',
    ],
  }
}

function headers(caller: Caller): Cases {
  const withFields = (fields: string) => get(caller, caller.connection.orders, fields)
  const bare = `GET ${caller.connection.orders} HTTP/1.1\r\n`
  return {
    'more than the limit': [withFields(`X: ${'a'.repeat(20_000)}\r\n`), 'malformed_request'],
    'hundreds of headers': [withFields('X: y\r\n'.repeat(900)), 200],
    'thousands of headers': [withFields('X: y\r\n'.repeat(2_000)), 'malformed_request'],
    'no Host': [`${bare}Authorization: Bearer ${caller.token}\r\n\r\n`, 'malformed_request'],
    'two Hosts': [withFields('Host: y\r\n'), 'malformed_request'],
    'a blank before the colon': [withFields('X : y\r\n'), 'malformed_request'],
    'no colon': [withFields('X\r\n'), 'malformed_request'],
    'a NUL in a value': [withFields('X: \0\r\n'), 'malformed_request'],
    'a NUL in a name': [withFields('X\0: y\r\n'), 'malformed_request'],
    'an unknown expectation': [withFields('Expect: the-unexpected\r\n'), 200],
    'an upgrade': [withFields('Connection: Upgrade\r\nUpgrade: websocket\r\n'), 200],
    'an upgrade to HTTP/2': [
      withFields('Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n'),
      200,
    ],
    'a tag of 8 KB': [withFields(`If-None-Match: "${'\xff'.repeat(8_192)}"\r\n`), 200],
    'thousands of tags': [withFields(`If-None-Match: ${'"a",'.repeat(3_000)}\r\n`), 200],
    'an encoding that nobody knows': [withFields('Accept-Encoding: x;q=9,,;,*;q=0\r\n'), 200],
    'types that do not suit': [withFields('Accept: image/png\r\nContent-Type: \xff\r\n'), 200],
    'a range': [withFields('Range: bytes=5-1\r\nIf-Range: x\r\nIf-Match: "x"\r\n'), 200],
    'times that are none': [withFields('If-Modified-Since: x\r\nIf-Unmodified-Since: x\r\n'), 200],
    'another address': [
      withFields('X-Forwarded-For: \xff\r\nX-Original-URL: /\r\nForwarded: x\r\n'),
      200,
    ],
    'another method': [withFields('X-HTTP-Method-Override: DELETE\r\n'), 200],
  }
}

function bodies(caller: Caller): Cases {
  const withFields = (fields: string) => get(caller, caller.connection.orders, fields)
  const chunked = withFields('Transfer-Encoding: chunked\r\n')
  return {
    'an empty body': [withFields('Content-Length: 0\r\n'), 200],
    'a body': [`${withFields('Content-Length: 5\r\n')}hello`, 'malformed_request'],
    'a body of JSON': [
      `${withFields('Content-Type: application/json\r\nContent-Length: 1\r\n')}{`,
      'malformed_request',
    ],
    'a chunked body': [`${chunked}5\r\nhello\r\n0\r\n\r\n`, 'malformed_request'],
    'a body that is announced and does not come': [
      withFields('Content-Length: 1000000\r\n'),
      'malformed_request',
    ],
    'a chunk that is none': [`${chunked}zz\r\nhello\r\n`, 'malformed_request'],
    'a length that is none': [withFields('Content-Length: -5\r\n'), 'malformed_request'],
    'two lengths': [withFields('Content-Length: 1\r\nContent-Length: 2\r\n'), 'malformed_request'],
    'length and chunks': [
      withFields('Content-Length: 1\r\nTransfer-Encoding: chunked\r\n'),
      'malformed_request',
    ],
    'an unknown coding': [withFields('Transfer-Encoding: x\r\n'), 'malformed_request'],
  }
}

function protocol(caller: Caller): Cases {
  const { token, connection } = caller
  const line = (text: string) => `${text}\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const { orders } = connection
  return {
    'HTTP/1.0': [`GET ${orders} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`, 200],
    'HTTP/3.7': [line(`GET ${orders} HTTP/3.7`), 'malformed_request'],
    'the preface of HTTP/2': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'malformed_request'],
    TLS: [[Buffer.from('16030100a5010000a10303', 'hex')], 'malformed_request'],
    garbage: [[Buffer.from([0, 1, 2, 250, 255, 13, 10, 13, 10])], 'malformed_request'],
    'another protocol': ['SSH-2.0-OpenSSH_9.6\r\n', 'malformed_request'],
    'line feeds alone': [get(caller, orders).replaceAll('\r\n', '\n'), 'malformed_request'],
    'empty lines before': [`\r\n\r\n${get(caller, orders)}`, 200],
    'in many pieces': [get(caller, orders).match(/[\s\S]{1,20}/g) ?? [], 200],
    CONNECT: [line('CONNECT x:443 HTTP/1.1'), 'method_not_allowed'],
    TRACE: [line(`TRACE ${orders} HTTP/1.1`), 'method_not_allowed'],
    QUERY: [line(`QUERY ${orders} HTTP/1.1`), 'method_not_allowed'],
    PROPFIND: [line(`PROPFIND ${orders} HTTP/1.1`), 'method_not_allowed'],
    'a method that nobody knows': [line(`FETCH ${orders} HTTP/1.1`), 'malformed_request'],
    'a method in small letters': [line(`get ${orders} HTTP/1.1`), 'malformed_request'],
    'no method': [line(`${orders} HTTP/1.1`), 'malformed_request'],
  }
}
