import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Ajv } from 'ajv'
import { parse } from 'fast-querystring'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Config } from '../config.ts'
import type { Limits } from '../limits/limits.ts'
import { mayTake } from '../limits/tenants.ts'
import { poolSizes } from '../postgres/database.ts'
import { serverUrls } from '../postgres/server-urls.ts'
import { MAX_PARAMETER_ERRORS, type ProblemError, problem } from '../schemas/problem.ts'
import { errorBody, sendError } from './error-handler.ts'
import { leavesOut, takeUnlogged } from './log.ts'
import {
  SECURITY_HEADERS,
  type ServiceState,
  setCommonHeaders,
  setSecurityHeaders,
} from './request-context.ts'

/** Every error of a query is reported, and no value is changed: parameters are strings (contract 2 and 5). */
const VALIDATION = {
  allErrors: true,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
} as const

const DAY = /^(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])$/

/** True for a day that exists, as YYYY-MM-DD (contract 3). */
function isDay(text: string): boolean {
  if (!DAY.test(text)) return false
  const day = Number(text.slice(-2))
  // JavaScript reads the 30th of February as a day in March. Each month has 28 days.
  return day <= 28 || new Date(text).getUTCDate() === day
}

/**
 * Parses a query, as Fastify does, up to one parameter more than a response lists errors. No route has as many, so one of
 * them is unknown or repeated, and the query is rejected all the same. A URL has up to 3,844 names: to parse and to check all of
 * them took ten times as long as the rest of the request, before the caller was known.
 */
export function parseQuery(text: string): Record<string, unknown> {
  return parse(firstParameters(text, MAX_PARAMETER_ERRORS + 1))
}

function firstParameters(text: string, count: number): string {
  let end = -1
  for (let found = 0; found < count; ) {
    const next = text.indexOf('&', end + 1)
    if (next < 0) return text
    const isEmpty = next === end + 1
    if (!isEmpty) found += 1
    end = next
  }
  return text.slice(0, end)
}

/** Options of Fastify. docs/settings.md gives the reasons for its limits. The other limits are in src/limits. */
export function httpOptions({ TRUSTED_PROXIES }: Config) {
  return {
    // During shutdown, the service responds with `Connection: close`.
    return503OnClosing: false,
    trustProxy: TRUSTED_PROXIES ?? false,
    // A connection token of any length gets 404. Node.js limits the whole path.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES, querystringParser: parseQuery },
    serverFactory: createLimitedServer,
    ajv: {
      customOptions: VALIDATION,
      // The library's own format accepts the year 0000, which PostgreSQL does not have.
      onCreate: (ajv: Ajv) => void ajv.addFormat('date', isDay),
    },
  }
}

/** Connections of clients, if the process may open as many files. Each one needs memory, even when idle. */
export const MAX_SOCKETS = 5_000

const REQUEST_TIMEOUT_MS = 10_000

/** Time without progress of a response, in ms. A client that reads 10 KB/s shows progress once a minute. */
const STALL_MS = 120_000

/** Request line and all headers together. */
const MAX_HEADER_BYTES = 16_384

/** Files of Node.js itself, log, metrics and Redis. */
const RESERVED_FILES = 100

/** Returns MAX_SOCKETS, or less so that clients leave files for connections to PostgreSQL. */
export function socketLimit({ DATABASE_POOL_SIZE, DATABASE_REPLICA_URL = '' }: Config): number {
  const report: { userLimits?: { open_files: { soft: number | 'unlimited' } } } =
    process.report.getReport()
  const files = report.userLimits?.open_files.soft
  if (typeof files !== 'number') return MAX_SOCKETS
  const servers = 1 + serverUrls(DATABASE_REPLICA_URL).length
  const { small, large } = poolSizes(DATABASE_POOL_SIZE)
  // One more finds the primary.
  const free = files - servers * (small + large + 1) - RESERVED_FILES
  return Math.min(MAX_SOCKETS, Math.max(1, free))
}

function createLimitedServer(handler: RequestListener): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // On a new connection, counted from its start.
    headersTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: 1_000,
    // Longer than the 60 s of load balancers: they may otherwise send a request on a closing connection.
    keepAliveTimeout: 72_000,
    // rejectMalformed() checks it, to send the common error body.
    requireHostHeader: false,
    // Two headers Authorization or Host then match no rule. Otherwise Node.js would drop the second one.
    joinDuplicateHeaders: true,
  })
  server.setTimeout(STALL_MS)
  // RFC 9110, section 10.1.1: a server may ignore an expectation.
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (request, response) => server.emit('request', request, response))
  serveOneByOne(server, handler)
  return server
}

/** Node.js documents no other way to end the parser of a socket. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming: () => number }
}

/** Serves one request at a time on a socket. A pipelined one closes it: its response would wait in memory. */
function serveOneByOne(server: Server, handler: RequestListener): void {
  server.on('request', (request, response) => {
    const socket: ParsedSocket = request.socket
    // The socket belongs to the response before this one.
    if (response.socket === null) {
      // 2 ends the parser. It would otherwise parse 2,400 requests of a chunk, which takes 0.1 s.
      if (socket.parser) socket.parser.onIncoming = () => 2
      socket.resetAndDestroy()
      return
    }
    handler(request, response)
  })
}

/** Rejects methods except GET and HEAD, bodies, and a missing or second Host. @throws ProblemError 400, 405 (contract 7) */
export const rejectMalformed: onRequestHookHandler = (request, reply, next) => {
  const { method } = request
  const isAllowed = method === 'GET' || method === 'HEAD'
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  if (length !== '0' || encoding !== undefined) {
    // Otherwise, Node.js would read the whole body to reach the next request.
    reply.header('connection', 'close')
    // RFC 9110, section 9.3.1: a proxy may read the body of a GET request as a second request.
    if (isAllowed)
      throw problem('malformed_request', { detail: 'The request must not have a body.' })
  }
  // RFC 9112, section 3.2: exactly one Host header since HTTP/1.1. Node.js joins repeated ones with commas.
  const { host = ',' } = request.headers
  if (host.includes(',') && request.raw.httpVersion !== '1.0')
    throw problem('malformed_request', { detail: 'The request must have one Host header.' })
  if (!isAllowed) throw problem('method_not_allowed')
  next()
}

/** Handles a path that the router cannot decode. No hook runs for such a request. */
export function rejectPath(limits: Limits, state: ServiceState, hasDocs: boolean) {
  return async (_error: Error, request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const { begins, repeatedBy } = limits.rejections.take(
      limits.tenants.of(request.ip),
      performance.now(),
    )
    if (!(state.draining || (await begins))) {
      request.raw.destroy()
      reply.hijack()
      return
    }
    setCommonHeaders(request, reply)
    setSecurityHeaders(reply)
    const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
    if (length !== '0' || encoding !== undefined) reply.header('connection', 'close')
    sendError(request, reply, problem('malformed_request'), hasDocs)
    if (leavesOut(repeatedBy)) return
    const line = { method: request.method, status: 400, errorCode: 'malformed_request' }
    request.log.info({ ...line, unlogged: takeUnlogged(repeatedBy) }, 'request')
  }
}

/** Socket of a client. Node.js documents no other way to find its response in flight. */
type ClientSocket = Socket & { _httpMessage?: ServerResponse | null }

/** Handles a request that Node.js cannot parse, that is too long, or that is incomplete at its timeout. */
export function rejectUnparsable(limits: Limits, state: ServiceState) {
  return function (
    this: FastifyInstance,
    error: Error & { code?: string },
    socket: ClientSocket,
  ): void {
    // Node.js reports each further chunk of the client, too.
    if (waitingSockets.has(socket)) return
    // Otherwise, an error body would end up in the middle of a response.
    const isResponding = socket._httpMessage?.headersSent ?? false
    if (error.code === 'ECONNRESET' || !socket.writable || isResponding) socket.resetAndDestroy()
    else void endSocket(this, { socket, limits, state }, problem('malformed_request'))
  }
}

/** Rejects CONNECT (contract 7). Node.js passes its socket on, also while a response is in flight. */
export function rejectConnect(app: FastifyInstance, limits: Limits): void {
  app.server.on('connect', (_request, stream) => {
    const socket = stream as ClientSocket
    const { _httpMessage: response } = socket
    socket.on('error', () => {})
    // Node.js no longer tells the response that its socket has closed.
    if (response) socket.once('close', () => response.emit('close')).resetAndDestroy()
    else void endSocket(app, { socket, limits, state: app.state }, problem('method_not_allowed'))
  })
}

/** Sockets whose rejection is delayed. */
const waitingSockets = new WeakSet<Socket>()

interface Rejected {
  socket: ClientSocket
  limits: Limits
  state: ServiceState
}

/** Sends an error, after a delay if rejections are repeated, and closes the socket. */
async function endSocket(
  app: FastifyInstance,
  { socket, limits, state }: Rejected,
  error: ProblemError,
): Promise<void> {
  const tenant = limits.tenants.of(socket.remoteAddress ?? '')
  const { begins, repeatedBy } = limits.rejections.take(tenant, performance.now())
  waitingSockets.add(socket)
  // A response in flight must not follow the error.
  const isResponding = Boolean(socket._httpMessage)
  if (!(state.draining || isResponding || (await begins))) {
    socket.resetAndDestroy()
    return
  }
  const requestId = randomUUID()
  const found = errorBody(error, requestId)
  if (!leavesOut(repeatedBy)) {
    const line = { requestId, status: found.status, errorCode: found.code }
    app.log.info({ ...line, unlogged: takeUnlogged(repeatedBy) }, 'request')
  }
  const body = JSON.stringify(found)
  const headers = {
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    connection: 'close',
    ...SECURITY_HEADERS,
    ...error.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const response = `HTTP/1.1 ${found.status} ${found.title}\r\n${lines.join('')}\r\n${body}`
  socket.end(response, () => socket.destroy())
}

/** Closes new connections of an address that has three quarters of them: it could otherwise hold all, also without requests. */
export function shareSockets(server: Server, { tenants }: Limits): void {
  let open = 0
  server.on('connection', (socket: Socket) => {
    const tenant = tenants.of(socket.remoteAddress ?? '')
    if (!mayTake(1, tenant.sockets, (server.maxConnections || MAX_SOCKETS) - open)) {
      socket.destroy()
      return
    }
    open += 1
    tenant.sockets += 1
    onDestroy(socket, () => {
      open -= 1
      tenant.sockets -= 1
    })
  })
}

/**
 * Calls a function once, when a socket is destroyed. A listener of `close` would do the same. But with a listener of any
 * event on the socket, Node.js 24 keeps the objects of each request until the next full garbage collection: of 65 requests,
 * a scavenge then promotes 276 KB instead of 16 KB.
 */
function onDestroy(socket: Socket, listener: () => void): void {
  const destroy = socket._destroy
  socket._destroy = (error, callback) => {
    listener()
    destroy.call(socket, error, callback)
  }
}
