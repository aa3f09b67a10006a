import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { HttpError, serviceUnavailable } from './errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Requests whose response has not ended. */
    inFlight: { requests: number }
  }
}

/** Counts the requests in flight of all routes that are registered after it. */
export const inFlight = fp(async (app: FastifyInstance) => {
  const count = { requests: 0 }
  const leave = () => {
    count.requests -= 1
  }
  app.decorate('inFlight', count)
  app.addHook('onRequest', (_request, reply, next) => {
    count.requests += 1
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
  app.addHook('onRequest', (_request, _reply, next) => {
    if (app.inFlight.requests <= MAX_REQUESTS) return next()
    next(serviceUnavailable('Too many requests are in flight. Try again soon.'))
  })
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
