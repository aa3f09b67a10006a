import type { FastifyInstance, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'

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
