import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/**
 * One line for each request, when it is over. The route is its pattern, never the address: that holds
 * the connection's token, which is a credential (contract 21).
 */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.decorateRequest('answered')
  app.addHook('onResponse', async (request, reply) => {
    const facts = {
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
      app: request.answered?.appId,
      items: request.answered?.items,
    }
    request.log.info(facts, 'request')
  })
})
