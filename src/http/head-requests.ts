import type { FastifyInstance, onSendHookHandler } from 'fastify'
import fp from 'fastify-plugin'

/** Removes a Content-Length that GET would not have, because caches drop a response by it (RFC 9110, 8.6; 9111, 4.3.5). */
export const headRequests = fp(async (app: FastifyInstance) => {
  app.addHook('onRoute', (route) => {
    if (route.method !== 'HEAD') return
    route.onSend = [...[route.onSend ?? []].flat(), withoutLength]
  })
})

const withoutLength: onSendHookHandler = ({ headers }, reply, payload, done) => {
  // The plugin does not compress a body that is not sent.
  const isUnknown = headers['accept-encoding'] !== undefined && !reply.hasHeader('content-encoding')
  // Fastify gives a 304 a length of 0.
  if (reply.statusCode === 304 || isUnknown) reply.removeHeader('content-length')
  done(null, payload)
}
