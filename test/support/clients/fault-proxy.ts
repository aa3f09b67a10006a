import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

/** What the proxy does with a request. `none`: it forwards it. */
export type Fault = 'none' | keyof typeof faults

export interface FaultProxy {
  url: string
  /** Number of requests by fault. */
  counts: Partial<Record<Fault, number>>
  /** Connections that clients have opened. */
  connections: number
  /** Path and headers of the last request. */
  path: string
  headers: IncomingMessage['headers']
}

interface FaultProxyOptions {
  /** URL of the service. */
  target: string
  /** Returns the fault of the n-th request, from 0. */
  fault: (n: number, path: string) => Fault
  /** Seconds of Retry-After; '0' by default. */
  retryAfter?: string
  /** Address of a redirect. */
  location?: string
  /** Added to each response that is forwarded; undefined removes the header. */
  headers?: Record<string, string | undefined>
  /** Runs before each request. */
  before?: () => Promise<void>
  /** Certificate and key of a proxy with TLS. */
  tls?: { cert: Buffer; key: Buffer }
}

interface Exchange extends Pick<FaultProxyOptions, 'target' | 'location' | 'headers'> {
  incoming: IncomingMessage
  response: ServerResponse
  retryAfter: string
}

/** Time between two parts of a dripped response, in ms. */
const DRIP_MS = 20

const faults = {
  /** 401, as for a revoked token. */
  unauthorized: (exchange: Exchange) => sendProblem(exchange, 401, 'invalid_token'),
  /** 410. */
  expired: (exchange: Exchange) => sendProblem(exchange, 410, 'cursor_expired'),
  /** 429 with `Retry-After`. */
  quota: (exchange: Exchange) => sendProblem(exchange, 429, 'too_many_requests'),
  /** 503 with `Retry-After`. */
  unavailable: (exchange: Exchange) => sendProblem(exchange, 503, 'service_unavailable'),
  /** An HTML page with 404. */
  page: (exchange: Exchange) => sendPage(exchange, 404),
  /** Pages of a proxy in front of the service. */
  'bad gateway': (exchange: Exchange) => sendPage(exchange, 502),
  'gateway timeout': (exchange: Exchange) => sendPage(exchange, 504),
  /** A redirect to `location`, with the whole path. */
  redirect: ({ incoming, response, location }: Exchange) => {
    response.writeHead(302, { location: `${location}${incoming.url}` }).end()
  },
  /** The connection is reset. */
  reset: ({ incoming }: Exchange) => incoming.socket.resetAndDestroy(),
  /** The connection ends among the headers. */
  'cut headers': ({ incoming }: Exchange) => incoming.socket.end('HTTP/1.1 200 OK\r\nx-a: b\r\n'),
  /** The connection ends in the middle of the body. */
  cut: async (exchange: Exchange) => {
    sendHalf(exchange, await forwarded(exchange)).end()
  },
  /** A response without its last lines, which seems to be complete. */
  short: async (exchange: Exchange) => {
    exchange.incoming.headers['accept-encoding'] = 'identity'
    const { result, body } = await forwarded(exchange)
    const { 'content-length': _, ...headers } = result.headers
    const half = body.subarray(0, body.length / 2)
    const end = half.lastIndexOf('\n') + 1 || half.length
    await send(exchange, {
      result: Object.assign(result, { headers }),
      body: half.subarray(0, end),
    })
  },
  /** Nothing comes after the middle of the body. */
  stall: async (exchange: Exchange) => {
    sendHalf(exchange, await forwarded(exchange))
  },
  /** A complete response, but the connection ends after it. */
  'hang up': async (exchange: Exchange) => {
    await send(exchange, await forwarded(exchange))
    exchange.incoming.socket.destroySoon()
  },
  /** No response. */
  silent: () => {},
  /** A header line now and then, without end. */
  'dripped headers': ({ incoming: { socket } }: Exchange) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    drip(socket, 'x-a: b\r\n')
  },
  /** A byte of the body now and then. */
  'dripped body': ({ incoming: { socket } }: Exchange) => {
    const type = 'application/json;IEEE754Compatible=true'
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: ${type}\r\ncontent-length: 1000000\r\n\r\n`)
    drip(socket, ' ')
  },
  /** Bytes that are not HTTP. */
  'not HTTP': ({ incoming: { socket } }: Exchange) => socket.end('220 mail.example.com ESMTP\r\n'),
}

/** Starts an HTTP proxy that injects faults. */
export async function startFaultProxy(t: Test, options: FaultProxyOptions): Promise<FaultProxy> {
  const { fault, before, retryAfter = '0', tls } = options
  let requests = 0
  const server = tls ? createTlsServer(tls) : createServer()
  server.on('request', async (incoming: IncomingMessage, response: ServerResponse) => {
    const current = fault(requests, String(incoming.url))
    requests += 1
    proxy.counts[current] = (proxy.counts[current] ?? 0) + 1
    proxy.headers = incoming.headers
    proxy.path = String(incoming.url)
    await before?.()
    const exchange = { ...options, incoming, response, retryAfter }
    if (current === 'none') await send(exchange, await forwarded(exchange))
    else await faults[current](exchange)
  })
  server.on('connection', () => {
    proxy.connections += 1
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  const proxy: FaultProxy = { url, counts: {}, connections: 0, path: '', headers: {} }
  return proxy
}

function sendProblem({ response, retryAfter }: Exchange, status: number, code: string): void {
  const requestId = randomUUID()
  const problem = { status, code, title: code, detail: 'Retry later.', requestId }
  const headers = { 'content-type': 'application/json', 'x-request-id': requestId }
  response.writeHead(status, { ...headers, 'retry-after': retryAfter })
  response.end(JSON.stringify(problem))
}

function sendPage({ response }: Exchange, status: number): void {
  response.writeHead(status, { 'content-type': 'text/html' })
  response.end('<h1>Not found</h1>')
}

function drip(socket: Socket, text: string): void {
  const timer = setInterval(() => socket.write(text), DRIP_MS)
  socket.on('error', () => {}).on('close', () => clearInterval(timer))
}

interface Forwarded {
  result: IncomingMessage
  body: Buffer
}

async function forwarded({ target, incoming }: Exchange): Promise<Forwarded> {
  const { url = '/', headers } = incoming
  const outgoing = request(new URL(url, target), { headers, agent: false })
  const [result] = (await once(outgoing.end(), 'response')) as [IncomingMessage]
  return { result, body: await buffer(result) }
}

async function send({ response, headers }: Exchange, { result, body }: Forwarded): Promise<void> {
  // The connection to the service is closed, that to the client is kept.
  const { connection: _, ...rest } = result.headers
  const sent = Object.entries({ ...rest, ...headers }).filter(([, value]) => value !== undefined)
  response.writeHead(result.statusCode ?? 502, Object.fromEntries(sent))
  await once(response.end(body), 'finish')
}

function sendHalf({ response }: Exchange, { result, body }: Forwarded): Socket {
  const socket = response.socket as Socket
  const lines = Object.entries(result.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${result.statusCode} \r\n${lines.join('')}\r\n`)
  const half = body.subarray(0, body.length / 2)
  const isChunked = result.headers['transfer-encoding'] === 'chunked'
  // The last chunk is missing, and no chunk is incomplete.
  if (isChunked) socket.write(`${half.length.toString(16)}\r\n`)
  socket.write(half)
  if (isChunked) socket.write('\r\n')
  return socket
}
