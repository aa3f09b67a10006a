import { METHODS } from 'node:http'
import type { FastifyInstance, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'
import { HttpError } from './errors.ts'

const ALLOWED = ['GET', 'HEAD']
// CONNECT never reaches a route: malformed-requests.ts rejects it.
const REFUSED = METHODS.filter((method) => !ALLOWED.includes(method) && method !== 'CONNECT')

/** The value of the header Allow. */
export const ALLOWED_METHODS = ALLOWED.join(', ')
export const WRONG_METHOD = `Only ${ALLOWED.join(' and ')} are answered here.`

/**
 * Answers 405 with Allow to every other method, on every address that is registered after this
 * (contract 7): whoever asks, and before a body is read.
 */
export const methodNotAllowed = fp(async (app: FastifyInstance) => {
  for (const method of REFUSED) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
  app.addHook('onRequest', async ({ method, is404 }) => {
    if (ALLOWED.includes(method) || is404) return
    throw new HttpError('method_not_allowed', WRONG_METHOD, { headers: { allow: ALLOWED_METHODS } })
  })
  // Without a route for it, a method would be 404 rather than 405.
  app.addHook('onRoute', function refuse({ method, routePath }) {
    if (method !== 'GET') return
    const schema = { hide: true }
    this.route({ method: REFUSED, url: routePath, schema, handler: async () => {} })
  })
})

/**
 * Fastify answers HEAD with what GET would say, and with a length of 0 where there is no body. On a 304
 * the length is that of the answer which the client has (RFC 9110, 8.6), and a cache that believed the
 * 0 would throw it away: so it is left out.
 */
export const headRequests = fp(async (app: FastifyInstance) => {
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') return
    route.onSend = [...[route.onSend ?? []].flat(), withoutLength]
  })
})

const withoutLength: onSendHookHandler = (_request, reply, payload, done) => {
  if (reply.statusCode === 304) reply.removeHeader('content-length')
  done(null, payload)
}
