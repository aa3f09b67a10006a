import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { tooManyRequests } from './request-context.ts'

/** Rejects requests to the routes of a scope, before any work, while `maximum` are in flight there. */
export const requestLimit = fp(async (app: FastifyInstance, { maximum }: { maximum: number }) => {
  let requests = 0
  const leave = () => {
    requests -= 1
  }
  app.addHook('onRequest', (_request, reply, next) => {
    if (requests >= maximum) {
      return next(tooManyRequests())
    }
    requests += 1
    reply.raw.once('close', leave)
    next()
  })
})
