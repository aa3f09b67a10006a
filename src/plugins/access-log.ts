import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyRequest {
    /** The calling app, once the database has said which one it is. */
    appId: string | undefined
    /** Rows in the answer. */
    items: number | undefined
  }
}

/**
 * One line for each request, when it is over. The route is its pattern, never the address: that holds
 * the connection's token, which is a credential (contract 21).
 */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.decorateRequest('appId')
  app.decorateRequest('items')
  app.addHook('onResponse', async (request, reply) => {
    const facts = {
      method: request.method,
      route: request.routeOptions.url,
      status: reply.statusCode,
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
      app: request.appId,
      items: request.items,
    }
    request.log.info(facts, 'request')
  })
})
