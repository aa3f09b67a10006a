import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Redis } from 'ioredis'
import { Counter, type Registry } from 'prom-client'
import { FifoMap, LruMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { withDeadline } from '../limits/deadline.ts'
import { type ProblemError, problem } from '../schemas/problem.ts'

const CONNECT_TIMEOUT_MS = 1_000
/** Maximum wait for a response of Redis, in ms. Then requests pass without being counted. */
const RESPONSE_TIMEOUT_MS = 500

/** Connects to the Redis that counts for all instances. While it is down, commands fail at once: none is queued. */
async function connectRedis(url: string, config: QuotaConfig): Promise<Redis> {
  // Only a service with Redis loads its client: 84 ms of processor time and 7 MB.
  const { Redis } = await import('ioredis')
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Closes the connection, and so ends all commands in flight.
    socketTimeout: RESPONSE_TIMEOUT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectionName: 'investment-data-query-service',
  })
  // The command in flight reports a lost connection.
  redis.on('error', () => {})
  redis.on('close', () => {
    const { username, password } = new URL(config.REDIS_URL ?? url)
    redis.options.username = decodeURIComponent(username)
    redis.options.password = decodeURIComponent(password)
  })
  await withDeadline(
    redis.connect().catch(() => {}),
    CONNECT_TIMEOUT_MS,
    () => {},
  )
  return redis
}

type QuotaConfig = Pick<Config, 'RATE_LIMIT_PER_MINUTE' | 'REDIS_URL'>

const WINDOW_SECONDS = 60
const WINDOW_MS = WINDOW_SECONDS * 1000
const KEYS = 'investment-data-query-service:quota:'

/** Apps that an instance without Redis counts. The least recently used one is dropped. */
const MAX_APPS = 10_000

/** Time without counting after a failure of Redis, in ms. */
const PAUSE_MS = 2_000
/** Time during which a further failure is not logged, in ms. */
const QUIET_MS = 60_000

interface Count {
  current: number
  ttl: number
}

/** Counts of an instance without Redis. A window begins with the first request of its app. */
export class RequestWindows {
  readonly #windows = new LruMap<{ current: number; end: number }>(MAX_APPS)

  count(app: string): Count {
    const now = performance.now()
    const last = this.#windows.get(app)
    const window = last && last.end > now ? last : { current: 0, end: now + WINDOW_MS }
    window.current += 1
    this.#windows.set(app, window)
    return { current: window.current, ttl: window.end - now }
  }
}

/** Returns a store for @fastify/rate-limit. Its own one returns one object to concurrent requests. */
function storeOf(count: (app: string) => Count | Promise<Count>): FastifyRateLimitStoreCtor {
  return class Store {
    incr(app: string, done: (error: Error | null, result?: Count) => void) {
      Promise.resolve(count(app)).then((result) => done(null, result), done)
    }

    child() {
      return this
    }
  }
}

/** Returns a function that counts requests of an app in windows. It resolves with undefined while Redis is down. */
async function openCounter(app: FastifyInstance, config: QuotaConfig) {
  const { RATE_LIMIT_PER_MINUTE: perMinute, REDIS_URL: redisUrl } = config
  const redis = redisUrl === undefined ? undefined : await connectRedis(redisUrl, config)
  app.addHook('onClose', async () => redis?.disconnect())
  const counter = new RequestWindows()
  await app.register(rateLimit, {
    global: false,
    max: perMinute,
    timeWindow: WINDOW_MS,
    keyGenerator: (request) => String(request.context.appId),
    ...(redis ? { redis, nameSpace: KEYS } : { store: storeOf((appId) => counter.count(appId)) }),
  })
  const increment = app.createRateLimit()
  const uncounted = app.metrics && uncountedRequests(app.metrics)
  const forget = ({ context: { appId } }: FastifyRequest) =>
    void redis?.del(`${KEYS}${appId}`).catch(() => {})
  let pausedUntil = 0
  let quietUntil = Number.NEGATIVE_INFINITY
  return async (request: FastifyRequest) => {
    if (performance.now() < pausedUntil) {
      uncounted?.inc()
      return undefined
    }
    try {
      const count = await increment(request)
      if (count.isAllowed) return undefined
      if (count.ttl >= 0 && count.ttl <= WINDOW_MS + 1) return count
      // Someone else has written this key. Without it, the app begins a new window.
      forget(request)
      return undefined
    } catch (err) {
      uncounted?.inc()
      // A value that is no number concerns one app.
      if (err instanceof Error && err.name === 'ReplyError') forget(request)
      else pausedUntil = performance.now() + PAUSE_MS
      if (performance.now() >= quietUntil) {
        quietUntil = performance.now() + QUIET_MS
        app.log.warn({ err }, 'requests are not counted: Redis does not respond')
      }
      return undefined
    }
  }
}

function uncountedRequests(registry: Registry): Counter {
  return new Counter({
    name: 'quota_uncounted_requests_total',
    help: 'Requests that passed uncounted, because Redis did not respond.',
    registers: [registry],
  })
}

/** Limit on the requests of each app per minute (contract 19). */
export interface Quota {
  /** Counts a request of `context.appId`, and sets the headers of its quota. @throws ProblemError 429 if none is left */
  charge(reply: FastifyReply): Promise<void>
}

/**
 * Creates the quota of the settings. A request counts before its read, for the app that the last statement of its
 * caller found. All tokens of an app therefore share its quota, and an unknown token counts for no app.
 */
export async function openQuota(app: FastifyInstance, config: QuotaConfig): Promise<Quota> {
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  const count = await openCounter(app, config)
  // An app that has used up its quota needs no counter, which may be unavailable.
  const exhaustedUntil = new FifoMap<number>(MAX_APPS)
  return {
    async charge(reply) {
      setPolicy(reply, perMinute)
      const { appId } = reply.request.context
      const milliseconds = (exhaustedUntil.get(appId) ?? 0) - performance.now()
      if (milliseconds > 0) throw tooManyRequests(reply, perMinute, milliseconds)
      const state = await count(reply.request)
      if (state?.isExceeded) {
        exhaustedUntil.set(appId, performance.now() + state.ttl)
        throw tooManyRequests(reply, perMinute, state.ttl)
      }
      if (state) setRest(reply, state.remaining, state.ttl)
    },
  }
}

function setPolicy(reply: FastifyReply, perMinute: number): void {
  reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_SECONDS}`)
}

/** @returns the time until the quota is renewed, in seconds */
function setRest(reply: FastifyReply, remaining: number, milliseconds: number): number {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
  reply.header('ratelimit', `"app";r=${remaining};t=${seconds}`)
  return seconds
}

function tooManyRequests(
  reply: FastifyReply,
  perMinute: number,
  milliseconds: number,
): ProblemError {
  const retryAfter = String(setRest(reply, 0, milliseconds))
  const detail = `An app may send ${perMinute} requests a minute.`
  return problem('too_many_requests', { detail, headers: { 'retry-after': retryAfter } })
}
