import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { serviceUnavailable } from './errors.ts'

/** Rejects requests to the routes of a scope, before any work, while `maximum` are in flight there. */
export const requestLimit = fp(async (app: FastifyInstance, { maximum }: { maximum: number }) => {
  let requests = 0
  const leave = () => {
    requests -= 1
  }
  app.addHook('onRequest', (request, _reply, next) => {
    if (requests >= maximum) {
      return next(serviceUnavailable('Too many requests are in flight. Try again soon.'))
    }
    requests += 1
    request.endListeners.push(leave)
    next()
  })
})

/**
 * Rejects requests before any work if too many are in flight or the event loop is delayed. The accepted
 * requests then stay fast.
 */
export const overload = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  await app.register(requestLimit, { maximum: config.MAX_REQUESTS })
  if (config.MAX_EVENT_LOOP_DELAY_MS === 0) return
  const isDelayed = watchEventLoop(app, config.MAX_EVENT_LOOP_DELAY_MS)
  app.addHook('onRequest', (_request, _reply, next) => {
    if (!isDelayed()) return next()
    next(serviceUnavailable('The service is overloaded. Try again soon.'))
  })
})

/** In ms. */
const RESOLUTION = 10
const SAMPLE = 500

/**
 * Measures the mean delay of the event loop twice a second. One long task delays one sample only, so
 * the loop counts as delayed after two samples. @fastify/under-pressure uses a single one. It also
 * reads the memory of the process: in a timer, this throws EMFILE when no file can be opened.
 */
function watchEventLoop(app: FastifyInstance, maximum: number): () => boolean {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION })
  delays.enable()
  let delayedSamples = 0
  const timer = setInterval(() => {
    // No delay was recorded yet: the next sample contains it.
    if (delays.count === 0) return
    delayedSamples = delays.mean / 1e6 - RESOLUTION > maximum ? delayedSamples + 1 : 0
    delays.reset()
  }, SAMPLE).unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    delays.disable()
  })
  return () => delayedSamples >= 2
}
