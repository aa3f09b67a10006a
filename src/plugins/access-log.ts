import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { RequestEnd } from './request-end.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The calling app, once the database has said which one it is. */
    appId: string | undefined
    /** Where it is found among the traces, when there are any. */
    traceId: string | undefined
    /** Rows in the answer. */
    items: number | undefined
  }
}

/**
 * One line for each request, when it is over, with these facts and no others. The route is its pattern,
 * never the address: that holds the connection's token, which is a credential (contract 21).
 */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.decorateRequest('appId')
  app.decorateRequest('items')
  app.decorateRequest('traceId')
  app.onRequestEnd(({ request, reply, aborted }: RequestEnd) => {
    const facts = {
      method: request.method,
      route: request.routeOptions.url,
      status: aborted && !reply.raw.headersSent ? undefined : reply.statusCode,
      problem: request.problem,
      lacking: request.lacking,
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
      app: request.appId,
      items: request.items,
      traceId: request.traceId,
    }
    if (aborted) request.log.info({ ...facts, aborted }, 'request')
    else request.log.info(facts, 'request')
  })
})
