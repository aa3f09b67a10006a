import type { FastifyInstance, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'

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
