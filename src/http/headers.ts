import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { problem } from '../schemas/problem.ts'

/**
 * Headers for responses that are data, not pages. The referrer policy protects the connection token in
 * the path. The proxy that terminates TLS sets Strict-Transport-Security. They cost 2 µs of CPU.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** The service ignores ids that clients send, because they may not be unique. */
export const newRequestId = (): string => randomUUID()

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/

/** Sends the request id, and returns the client's own trace id to it (contract 22). */
export function setRequestIdentity(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  const trace = request.headers['x-client-trace-id']
  if (typeof trace === 'string' && VISIBLE_ASCII.test(trace)) {
    reply.header('x-client-trace-id', trace)
  }
}

/** Rejects methods except GET and HEAD, bodies, and a missing or second Host. @throws ProblemError 400, 405 (contract 7) */
export function rejectMalformed(request: FastifyRequest, reply: FastifyReply): void {
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
}

export function hasBody({ headers }: FastifyRequest): boolean {
  const length = headers['content-length']
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined
}
