import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../schemas/problem.ts'
import { errorBody, sendError } from './error-handler.ts'
import { hasBody, newRequestId, SECURITY_HEADERS, setRequestIdentity } from './headers.ts'

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
  socket: Duplex & { _httpMessage?: ServerResponse | null },
): void {
  // Otherwise, an error body would end up in the middle of a response.
  const isResponding = socket._httpMessage?.headersSent ?? false
  if (error.code === 'ECONNRESET' || !socket.writable || isResponding) {
    socket.destroy()
    return
  }
  const requestId = newRequestId()
  const found = errorBody(problem('malformed_request'), requestId)
  this.log.info({ requestId, status: found.status, errorCode: found.code }, 'request')
  const body = JSON.stringify(found)
  const headers = {
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    connection: 'close',
    ...SECURITY_HEADERS,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${found.status} ${found.title}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  )
}
