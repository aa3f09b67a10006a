import underPressure from '@fastify/under-pressure'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { HttpError, serviceUnavailable } from './errors.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** The requests that have come and whose response is not over. */
    inFlight: { requests: number }
  }
}

/** Counts the requests under way, of every route that is registered after it. */
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
 * Refuses requests at once, before anything is done for them, when there are too many already or the
 * process is late with everything: those under way are then served in time instead of all being slow.
 */
export const overload = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  const { inFlight: count } = app
  app.addHook('onRequest', (_request, _reply, next) => {
    next(count.requests > config.MAX_REQUESTS ? tooMany() : undefined)
  })
  if (config.MAX_EVENT_LOOP_DELAY_MS === 0) return
  await app.register(underPressure, {
    maxEventLoopDelay: config.MAX_EVENT_LOOP_DELAY_MS,
    sampleInterval: 500,
    customError: Late,
  })
})

function tooMany(): HttpError {
  return serviceUnavailable('Too many requests are under way here. Try again soon.')
}

class Late extends HttpError {
  constructor() {
    const { code, message, headers } = serviceUnavailable(
      'The service is overloaded. Try again soon.',
    )
    super(code, message, { headers })
  }
}
