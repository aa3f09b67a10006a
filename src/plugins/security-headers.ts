import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

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
