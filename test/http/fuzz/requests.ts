import { fc } from '../../support/random.ts'
import type { Operation, Parameter } from './document.ts'
import { headerValue, hostileValue, type Value, validValue } from './values.ts'

/** A request, one character a byte. */
export interface Request {
  bytes: string
  method: string
  /** Operation of its URL; undefined if it is another one, none or unclear. */
  operationId: string | undefined
  /** True if the document promises 200 or 304. */
  valid: boolean
  /** True if the bytes may not be HTTP, so that the connection cannot be reused. */
  malformed: boolean
}

/** Valid credentials. */
export interface Credentials {
  token: string
  connections: string[]
}

export function anyRequest(
  operations: Operation[],
  credentials: Credentials,
): fc.Arbitrary<Request> {
  const whole = fc.constantFrom(...operations).chain((operation) => request(operation, credentials))
  return fc.oneof({ weight: 6, arbitrary: whole }, { weight: 1, arbitrary: malformed(whole) })
}

interface Line {
  text: string
  valid: boolean
}

function request(operation: Operation, credentials: Credentials): fc.Arbitrary<Request> {
  return fc
    .record({
      method: method(),
      path: path(operation, credentials),
      query: query(operation.parameters),
      authorization: authorization(credentials),
      headers: headers(operation.parameters),
      body: body(),
    })
    .map(({ method, path, query, authorization, headers, body }) => {
      const lines = ['Host: x', authorization.text, ...headers.map(({ text }) => text), body.header]
      const head = [`${method} ${path.text}${query.text} HTTP/1.1`, ...lines.filter(Boolean)]
      const valid = [path, query, authorization, ...headers].every((part) => part.valid)
      return {
        bytes: `${head.join('\r\n')}\r\n\r\n${body.text}`,
        method,
        operationId: leadsTo(operation, path.text) ? operation.id : undefined,
        valid: valid && method === 'GET' && body.text === '',
        // Then the end of the body is unclear.
        malformed: headers.some(({ text }) => text.startsWith('Transfer-Encoding')),
      }
    })
}

/** Returns true if the path is the operation's, with any one segment as the token. */
function leadsTo({ path }: Operation, text: string): boolean {
  const [before = '', after = ''] = path.split('{token}')
  const token = text.slice(before.length, text.length - after.length)
  return text === `${before}${token}${after}` && /^[^/?#]+$/.test(token)
}

const method = () =>
  fc.oneof(
    { weight: 20, arbitrary: fc.constant('GET') },
    { weight: 2, arbitrary: fc.constant('HEAD') },
    {
      weight: 3,
      arbitrary: fc.constantFrom('POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'QUERY'),
    },
    { weight: 1, arbitrary: fc.constantFrom('get', 'FETCH', 'PRI', 'CONNECT', 'G\0T') },
  )

function path({ path }: Operation, { connections }: Credentials): fc.Arbitrary<Line> {
  const token = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...connections).map(valid) },
    { weight: 1, arbitrary: hostileValue },
  )
  const inPlace = token.map(({ bytes, valid }) => ({ text: path.replace('{token}', bytes), valid }))
  const otherPath = fc
    .tuple(inPlace, hostileValue, fc.nat(path.length))
    .map(([{ text }, { bytes }, at]) => ({
      text: `/${text.slice(1, at)}${bytes}${text.slice(at)}`,
      valid: false,
    }))
  return fc.oneof({ weight: 9, arbitrary: inPlace }, { weight: 1, arbitrary: otherPath })
}

const valid = (bytes: string): Value => ({ bytes, valid: true })

function query(parameters: Parameter[]): fc.Arbitrary<Line> {
  const named = parameters.filter((parameter) => parameter.in === 'query')
  // `since` and the parameters of a page exclude each other.
  const isOfChanges = ({ name }: Parameter) => name === 'since' || name === 'limit'
  const page = fc.subarray(named.filter(({ name }) => name !== 'since' && name !== 'version'))
  const chosen = fc.oneof({ weight: 4, arbitrary: page }, fc.subarray(named.filter(isOfChanges)))
  const valid = chosen.chain((some) => fc.tuple(...some.map((one) => pair(one))))
  const name = fc.constantFrom(
    ...named.map((one) => one.name),
    'offset',
    '__proto__',
    '',
    'limit%00',
  )
  const odd = fc.tuple(name, hostileValue).map(([key, { bytes }]) => `${key}=${bytes}`)
  const all = fc.tuple(valid, fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(odd)))
  return all.map(([pairs, others]) => {
    const text = [...pairs, ...others].join('&')
    const from = /from=([^&]*)/.exec(text)?.[1] ?? ''
    const to = /to=([^&]*)/.exec(text)?.[1] ?? '9'
    return { text: text && `?${text}`, valid: others.length === 0 && from <= to }
  })
}

const pair = (parameter: Parameter) =>
  validValue(parameter).map(({ bytes }) => `${parameter.name}=${bytes}`)

function authorization({ token }: Credentials): fc.Arbitrary<Line> {
  const bad = fc.oneof(
    fc.constant(''),
    headerValue.map((value) => `Authorization: ${value}`),
    headerValue.map((value) => `Authorization: Bearer ${value}`),
    fc.constant(`Authorization: Bearer ${token}\r\nAuthorization: Bearer ${token}`),
    fc.constant(`Authorization: Basic ${token}`),
  )
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant({ text: `Authorization: Bearer ${token}`, valid: true }) },
    { weight: 1, arbitrary: bad.map((text) => ({ text, valid: false })) },
  )
}

function headers(parameters: Parameter[]): fc.Arbitrary<Line[]> {
  const documented = parameters.filter((one) => one.in === 'header').map((one) => one.name)
  const names = [
    ...documented,
    'Accept-Encoding',
    'Accept',
    'Range',
    'Connection',
    'Expect',
    'Host',
  ]
  const name = fc.constantFrom(...names, 'Upgrade', 'X-HTTP-Method-Override', 'Transfer-Encoding')
  const line = fc.tuple(name, headerValue).map(([key, value]) => ({
    text: `${key}: ${value}`,
    valid: documented.includes(key) && /^[ -~]{0,60}$/.test(value),
  }))
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant<Line[]>([]) },
    fc.array(line, { maxLength: 4 }),
  )
}

function body() {
  const some = fc.string({ unit: 'binary-ascii', maxLength: 40 })
  return fc.oneof(
    { weight: 9, arbitrary: fc.constant({ header: '', text: '' }) },
    some.map((text) => ({ header: `Content-Length: ${text.length}`, text })),
  )
}

/** A request with some bytes replaced, removed or inserted. */
function malformed(whole: fc.Arbitrary<Request>): fc.Arbitrary<Request> {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    lost: fc.nat(4),
    instead: fc.oneof(
      fc.constantFrom('', '\r\n', '\n', '\0', ' ', ':', '\r\n\r\n', '/', '?', '%', '\xff'),
      fc.string({ unit: 'binary-ascii', maxLength: 6 }),
    ),
  })
  return fc
    .tuple(whole, fc.array(edit, { minLength: 1, maxLength: 4 }))
    .map(([request, edits]) => ({
      ...request,
      bytes: edits.reduce((bytes, { at, lost, instead }) => {
        const place = Math.floor(at * bytes.length)
        return bytes.slice(0, place) + instead + bytes.slice(place + lost)
      }, request.bytes),
      operationId: undefined,
      valid: false,
      malformed: true,
    }))
}
