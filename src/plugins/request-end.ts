import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/** How a request ended: whole, or by a client that went away before it had its answer. */
export interface RequestEnd {
  request: FastifyRequest
  reply: FastifyReply
  aborted: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Has a function called for each request of the service, once, when it is over in any way. */
    onRequestEnd(listener: (end: RequestEnd) => void): void
  }
}

/** Fastify's own hook, onResponse, does not run for a request whose client is gone. */
export const requestEnd = fp(async (app: FastifyInstance) => {
  const listeners: ((end: RequestEnd) => void)[] = []
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => listeners.push(listener))
  app.addHook('onRequest', (request, reply, next) => {
    reply.raw.once('close', () => {
      const end = { request, reply, aborted: !reply.raw.writableFinished }
      for (const listener of listeners) listener(end)
    })
    next()
  })
})
