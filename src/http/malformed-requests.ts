import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type ProblemError, problem } from '../schemas/problem.ts'
import { errorBody, sendError } from './error-handler.ts'
import { hasBody, newRequestId, SECURITY_HEADERS, setRequestIdentity } from './headers.ts'

/** Handles the expectations and the method CONNECT, which Node.js would reject without the common error body. */
export const unusualRequests = fp(async (app: FastifyInstance) => {
  // RFC 9110, section 10.1.1: a server may ignore an expectation.
  for (const event of ['checkExpectation', 'checkContinue']) {
    app.server.on(event, (request, response) => app.server.emit('request', request, response))
  }
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => {})
    // src/http/limits.ts has closed it if a response is in flight.
    if (socket.writable) endSocket(app.log, socket, problem('method_not_allowed'))
  })
})

/** Handles a path that the router cannot decode. No hook runs for such a request. */
export function rejectPath(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  setRequestIdentity(request, reply)
  reply.headers(SECURITY_HEADERS)
  if (hasBody(request)) reply.header('connection', 'close')
  sendError(request, reply, problem('malformed_request'))
  const line = { method: request.method, status: 400, errorCode: 'malformed_request' }
  request.log.info(line, 'request')
}

/** Handles a request that Node.js cannot parse, that is too long, or that is incomplete at its timeout. */
export function rejectConnection(
  this: FastifyInstance,
  error: Error & { code?: string },
  socket: Duplex,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding(socket)) socket.destroy()
  else endSocket(this.log, socket, problem('malformed_request'))
}

/** True if an error body would end up in the middle of a response. */
function isResponding(socket: Duplex & { _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent ?? false
}

function endSocket(log: FastifyBaseLogger, socket: Duplex, error: ProblemError): void {
  const requestId = newRequestId()
  const problem = errorBody(error, requestId)
  const { status, title, code } = problem
  const body = JSON.stringify(problem)
  log.info({ requestId, status, errorCode: code }, 'request')
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
  const response = `HTTP/1.1 ${status} ${title}\r\n${lines.join('')}\r\n${body}`
  socket.end(response, () => socket.destroy())
}
