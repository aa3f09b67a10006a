import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { type ProblemError, problem } from '../schemas/problem.ts'
import { errorBody, sendError } from './error-handler.ts'
import { newRequestId, SECURITY_HEADERS, setCommonHeaders } from './request-context.ts'

/** Rejects methods except GET and HEAD, bodies, and a missing or second Host. @throws ProblemError 400, 405 (contract 7) */
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
  const length = headers['content-length']
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined
}

/** Handles a path that the router cannot decode. No hook runs for such a request. */
export function rejectPath(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  setCommonHeaders(request, reply)
  if (hasBody(request)) reply.header('connection', 'close')
  sendError(request, reply, problem('malformed_request'))
  const line = { method: request.method, status: 400, errorCode: 'malformed_request' }
  request.log.info(line, 'request')
}

/** Socket of a client. Node.js documents no other way to find its response in flight. */
type ClientSocket = Duplex & { _httpMessage?: ServerResponse | null }

/** Handles a request that Node.js cannot parse, that is too long, or that is incomplete at its timeout. */
export function rejectConnection(
  this: FastifyInstance,
  error: Error & { code?: string },
  socket: ClientSocket,
): void {
  // Otherwise, an error body would end up in the middle of a response.
  const isResponding = socket._httpMessage?.headersSent ?? false
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding) socket.destroy()
  else endSocket(this, socket, problem('malformed_request'))
}

/** Rejects CONNECT (contract 7). Node.js passes its socket on, also while a response is in flight. */
export function rejectConnect(app: FastifyInstance): void {
  app.server.on('connect', (_request, socket: ClientSocket) => {
    const { _httpMessage: response } = socket
    socket.on('error', () => {})
    // Node.js no longer tells the response that its socket has closed.
    if (response) socket.once('close', () => response.emit('close')).destroy()
    else endSocket(app, socket, problem('method_not_allowed'))
  })
}

function endSocket(app: FastifyInstance, socket: Duplex, error: ProblemError): void {
  const requestId = newRequestId()
  const found = errorBody(error, requestId)
  app.log.info({ requestId, status: found.status, errorCode: found.code }, 'request')
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
