import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/**
 * How often a request has a header. Of most, Node keeps the first and drops the others without a word.
 * @param name in lower case
 */
export function headerCount({ raw }: FastifyRequest, name: string): number {
  const { rawHeaders } = raw
  let times = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const header = rawHeaders[i] as string
    if (header.length === name.length && header.toLowerCase() === name) times += 1
  }
  return times
}

/**
 * What a browser is told about an answer that is data: run nothing of it, show it in no frame, believe
 * its media type, embed it in no other site's page, and name its address, which holds a token, to no
 * one. There is no Strict-Transport-Security: the service speaks plain HTTP, where browsers ignore it,
 * and whether all of a host is on HTTPS is known only to the proxy that ends TLS before it.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * Sets these on every answer. They are constants and few, because each request pays for them:
 * @fastify/helmet works its eleven out anew for each one, at some 10 µs of CPU against 2. The page of
 * documentation, which is not data, has it (plugins/docs-page.ts).
 */
export const securityHeaders = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(SECURITY_HEADERS)
    done()
  })
})

/** The server names every request itself; what a client sends as a name could be anything. */
export const newRequestId = (): string => randomUUID()

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/

export const requestIdentity = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request, reply) => tellIdentity(request, reply))
})

/** Tells that name in an answer, and gives the client its own trace id back (contract 22). */
export function tellIdentity(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  const trace = request.headers['x-client-trace-id']
  if (typeof trace === 'string' && VISIBLE_ASCII.test(trace)) {
    reply.header('x-client-trace-id', trace)
  }
}
