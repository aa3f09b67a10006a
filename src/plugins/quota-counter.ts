import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Counter, type Registry } from 'prom-client'
import { connectRedis } from './quota-store.ts'

export interface CounterOptions {
  /** How many requests an app may send in a minute. */
  perMinute: number
  /** The Redis that counts for all instances; without it, each one counts for itself. */
  redisUrl: string | undefined
}

export const WINDOW_SECONDS = 60

/** How many apps an instance counts for by itself; those that were quiet longest are forgotten. */
const MOST_APPS = 10_000

interface Count {
  exceeded: boolean
  remaining: number
  windowEndsInMs: number
}

/** How long a store that failed is left alone, and how often a failure is told, in ms. */
const PAUSE = 2_000
const SILENCE = 60_000

/**
 * Counts the requests of `request.appId` in windows that begin with the first one.
 * @returns a function that resolves with undefined while the store of the counts is out of reach
 */
export async function openCounter(app: FastifyInstance, options: CounterOptions) {
  const { perMinute, redisUrl } = options
  const redis = redisUrl === undefined ? undefined : await connectRedis(redisUrl)
  app.addHook('onClose', async () => redis?.disconnect())
  await app.register(rateLimit, {
    global: false,
    max: perMinute,
    timeWindow: WINDOW_SECONDS * 1000,
    keyGenerator: (request) => String(request.appId),
    cache: MOST_APPS,
    ...(redis ? { redis, nameSpace: 'investment-data-query-service:quota:' } : {}),
  })
  const limit = app.createRateLimit()
  const increment = redis ? limit : oneByOne(limit)
  const uncounted = app.metrics && uncountedRequests(app.metrics)
  let pausedUntil = 0
  let silentUntil = 0
  return async (request: FastifyRequest): Promise<Count | undefined> => {
    if (Date.now() < pausedUntil) {
      uncounted?.inc()
      return undefined
    }
    try {
      const count = await increment(request)
      if (count.isAllowed) return undefined
      const { isExceeded: exceeded, remaining, ttl: windowEndsInMs } = count
      return { exceeded, remaining, windowEndsInMs }
    } catch (err) {
      uncounted?.inc()
      pausedUntil = Date.now() + PAUSE
      if (Date.now() >= silentUntil) {
        silentUntil = Date.now() + SILENCE
        app.log.warn({ err }, 'requests are not counted: Redis does not answer')
      }
      return undefined
    }
  }
}

/**
 * Without Redis, the plugin gives all who count at the same time one object, and each of them would be
 * told the number of the last one: some would be refused before the quota is used up.
 */
function oneByOne<T, R>(count: (of: T) => Promise<R>): (of: T) => Promise<R> {
  let last: Promise<unknown> = Promise.resolve()
  return (of) => {
    const counted = last.then(() => count(of))
    last = counted.catch(() => {})
    return counted
  }
}

function uncountedRequests(registry: Registry): Counter {
  return new Counter({
    name: 'quota_uncounted_requests_total',
    help: 'Requests that passed uncounted, because Redis did not answer.',
    registers: [registry],
  })
}
