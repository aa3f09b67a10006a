import { METHODS } from 'node:http'
import type { FastifyInstance, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'

export const ALLOWED = ['GET', 'HEAD']
// CONNECT never reaches a route: malformed-requests.ts rejects it.
const REJECTED = METHODS.filter((method) => !ALLOWED.includes(method) && method !== 'CONNECT')

/** Adds every other method to each route that is registered after it. rejectMalformed() sends 405 (contract 7). */
export const methodNotAllowed = fp(async (app: FastifyInstance) => {
  for (const method of REJECTED) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
  // A method without a route would be 404 instead of 405.
  app.addHook('onRoute', function reject({ method, routePath }) {
    if (method !== 'GET') return
    const schema = { hide: true }
    this.route({ method: REJECTED, url: routePath, schema, handler: async () => {} })
  })
})

/** Removes Fastify's Content-Length of 0 from a 304 for HEAD: caches would drop the response (RFC 9110, 8.6). */
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
