import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type ProblemCode, ProblemCodes } from '../schemas/problem.ts'
import { HttpError, sendError } from './errors.ts'
import { headerCount, newRequestId, SECURITY_HEADERS, tellIdentity } from './headers.ts'
import { ALLOWED_METHODS, WRONG_METHOD } from './methods.ts'

const detail = 'The request cannot be read.'

/** For an address that the router cannot decode: it never gets as far as a route and its hooks. */
export function refuseAddress(_error: Error, request: FastifyRequest, reply: FastifyReply): void {
  tellIdentity(request, reply)
  reply.headers(SECURITY_HEADERS)
  sendError(request, reply, new HttpError('malformed_request', detail))
  const { errorCode } = request
  request.log.info({ method: request.method, status: reply.statusCode, errorCode }, 'request')
}

/**
 * For what Node cannot parse as HTTP, finds too long, or has waited for in vain: there is no request and
 * no reply, only a socket, which gets the one error body and is closed.
 */
export function refuseConnection(
  this: FastifyInstance,
  error: Error & { code?: string },
  socket: Duplex,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isAnswering(socket)) socket.destroy()
  else endConnection(this.log, socket, 'malformed_request', detail)
}

/** Whether an answer has begun, in whose middle another one would be taken for a part of it. */
function isAnswering(socket: Duplex & { _httpMessage?: ServerResponse | null }): boolean {
  return socket._httpMessage?.headersSent ?? false
}

/** Writes the one error body to a connection that has no reply, logs it, and closes it. */
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
 * Takes over what Node would answer by itself, without our body: a request without Host (which needs
 * `requireHostHeader: false`), an expectation that it does not know, and CONNECT.
 */
export const malformedRequests = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request) => {
    const { httpVersion } = request.raw
    // RFC 9112, 3.2: one Host, neither none nor two, since HTTP/1.1.
    if (httpVersion !== '1.0' && headerCount(request, 'host') !== 1) {
      throw new HttpError('malformed_request', 'The request must have one Host header.')
    }
  })
  // RFC 9110, 10.1.1: an expectation may be ignored.
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
