import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { HttpError, serviceUnavailable } from './errors.ts'

/** Rejects requests to the routes of a scope, before any work, while `maximum` are in flight there. */
export const requestLimit = fp(async (app: FastifyInstance, { maximum }: { maximum: number }) => {
  let requests = 0
  const leave = () => {
    requests -= 1
  }
  app.addHook('onRequest', (_request, reply, next) => {
    if (requests >= maximum) {
      return next(serviceUnavailable('Too many requests are in flight. Try again soon.'))
    }
    requests += 1
    reply.raw.once('close', leave)
    next()
  })
})

/**
 * Rejects requests before any work if too many are in flight or the event loop is delayed. The accepted
 * requests then stay fast.
 */
export const overload = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  const { MAX_REQUESTS, MAX_EVENT_LOOP_DELAY_MS } = config
  await app.register(requestLimit, { maximum: MAX_REQUESTS })
  if (MAX_EVENT_LOOP_DELAY_MS === 0) return
  await app.register(underPressure, {
    maxEventLoopDelay: MAX_EVENT_LOOP_DELAY_MS,
    sampleInterval: 500,
    customError: EventLoopDelayed,
  })
})

class EventLoopDelayed extends HttpError {
  constructor() {
    const { code, headers } = serviceUnavailable()
    super(code, 'The service is overloaded. Try again soon.', headers)
  }
}
