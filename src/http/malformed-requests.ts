import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
} from 'fastify'
import type { Limits } from '../limits/limits.ts'
import { type ProblemError, problem } from '../schemas/problem.ts'
import { type ErrorReplier, errorBody } from './error-handler.ts'
import { SECURITY_HEADERS, type ServiceState } from './request-context.ts'

/** Rejects methods except GET and HEAD, bodies, and a missing or second Host. @throws ProblemError 400, 405 */
export const rejectMalformed: onRequestHookHandler = (request, reply, next) => {
  const { method } = request
  const isAllowed = method === 'GET' || method === 'HEAD'
  if (hasBody(request)) {
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

function hasBody({ headers }: FastifyRequest): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  return length !== '0' || encoding !== undefined
}

/** Handles a path that the router cannot decode. No hook runs for such a request. */
export function rejectPath(replyWithError: ErrorReplier) {
  return async (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    request.server.beginRequest(request, reply)
    reply.headers(SECURITY_HEADERS)
    if (hasBody(request)) reply.header('connection', 'close')
    await replyWithError(error, request, reply)
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

/** Rejects CONNECT. Node.js passes its socket on, also while a response is in flight. */
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

/** Sends an error, after a delay if rejections are repeated, and closes the socket. It has no request that Fastify knows. */
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
  const sample = limits.logSamples.next(repeatedBy)
  if (sample !== undefined) {
    const line = { requestId, status: found.status, errorCode: found.code }
    app.log.info({ ...line, unlogged: sample.unlogged }, 'request')
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
