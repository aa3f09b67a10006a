import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type ProblemCode, ProblemCodes } from '../schemas/problem.ts'
import { HttpError, sendError } from './errors.ts'
import { headerCount, newRequestId, SECURITY_HEADERS, setRequestIdentity } from './headers.ts'
import { ALLOWED_METHODS, WRONG_METHOD } from './methods.ts'

const detail = 'The request cannot be read.'

/** Handles a path that the router cannot decode. No hook runs for such a request. */
export function rejectPath(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  setRequestIdentity(request, reply)
  reply.headers(SECURITY_HEADERS)
  sendError(request, reply, new HttpError('malformed_request', detail))
  const { errorCode } = request
  request.log.info({ method: request.method, status: reply.statusCode, errorCode }, 'request')
}

/**
 * Handles a request that Node.js cannot parse, that is too long, or that is incomplete at its timeout.
 * There is only a socket: sends the common error body and closes it.
 */
export function rejectConnection(
  this: FastifyInstance,
  error: Error & { code?: string },
  socket: Duplex,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding(socket)) socket.destroy()
  else endConnection(this.log, socket, 'malformed_request', detail)
}

/** True if an error body would end up in the middle of a response. */
function isResponding(socket: Duplex & { _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent ?? false
}

/** Writes the common error body to a socket, logs the request and closes the socket. */
function endConnection(
  log: FastifyBaseLogger,
  socket: Duplex,
  code: ProblemCode,
  detail: string,
  headers: string[] = [],
): void {
  const requestId = newRequestId()
  const { status, title } = ProblemCodes[code]
  const body = JSON.stringify({ status, code, title, detail, requestId })
  log.info({ requestId, status, errorCode: code }, 'request')
  const head = [
    `HTTP/1.1 ${status} ${title}`,
    `X-Request-ID: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
    ...Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`),
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

/**
 * Handles requests that Node.js would reject without the common error body: a missing Host header
 * (needs `requireHostHeader: false`), an unknown expectation, and CONNECT.
 */
export const malformedRequests = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request) => {
    const { httpVersion } = request.raw
    // RFC 9112, section 3.2: exactly one Host header since HTTP/1.1.
    if (httpVersion !== '1.0' && headerCount(request, 'host') !== 1) {
      throw new HttpError('malformed_request', 'The request must have one Host header.')
    }
  })
  // RFC 9110, section 10.1.1: a server may ignore an expectation.
  app.server.on('checkExpectation', (request, response) => {
    app.server.emit('request', request, response)
  })
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => {})
    endConnection(app.log, socket, 'method_not_allowed', WRONG_METHOD, [
      `Allow: ${ALLOWED_METHODS}`,
    ])
  })
})
