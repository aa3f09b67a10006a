import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Redis } from 'ioredis'
import { Counter } from 'prom-client'
import { LruMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { errorMessage } from '../error-message.ts'
import { withDeadline } from '../limits/deadline.ts'
import { problem } from '../schemas/problem.ts'
import type { SecretFiles } from '../secrets.ts'

const WINDOW_MS = 60_000
const KEYS = 'investment-data-query-service:quota:'

/** Apps that an instance without Redis counts. The least recently used one is dropped. */
const MAX_APPS = 10_000

const CONNECT_TIMEOUT_MS = 1_000
const RESPONSE_TIMEOUT_MS = 500
/** Time without a connection after a failure of Redis, in ms. Requests then pass without being counted. */
const PAUSE_MS = 2_000
/** Time during which a further failure is not logged, in ms. */
const QUIET_MS = 60_000

interface SharedCounts {
  redis: Redis
  /** Returns the cause of a failed command: its own error names only the options of ioredis that ended it. */
  causeOf(error: unknown): unknown
}

/** Connects to the Redis that counts for all instances. While it is down, commands fail at once: none is queued. */
async function connectRedis(
  url: string,
  secrets: Pick<SecretFiles, 'newest'>,
): Promise<SharedCounts> {
  // Only a service with Redis loads its client: 84 ms of processor time and 7 MB.
  const { Redis } = await import('ioredis')
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Closes the connection, and so ends all commands in flight.
    socketTimeout: RESPONSE_TIMEOUT_MS,
    retryStrategy: () => PAUSE_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectionName: 'investment-data-query-service',
  })
  let failure: Error | undefined
  redis.on('connect', () => {
    failure = undefined
  })
  redis.on('error', (error: Error) => {
    failure = error
  })
  redis.on('close', () => {
    failure ??= new Error('Redis closed the connection')
    const { username, password } = new URL(secrets.newest().REDIS_URL ?? url)
    redis.options.username = decodeURIComponent(username)
    redis.options.password = decodeURIComponent(password)
  })
  const connected = redis.connect().catch(() => {})
  await withDeadline(connected, CONNECT_TIMEOUT_MS, () => {})
  const causeOf = (error: unknown) => {
    // Redis itself has rejected the command.
    if (error instanceof Error && error.name === 'ReplyError') return error
    return failure ? new Error(errorMessage(failure), { cause: error }) : error
  }
  return { redis, causeOf }
}

/** Counts of an instance without Redis. The store of @fastify/rate-limit returns one object to concurrent requests. */
class Windows {
  readonly #windows = new LruMap<{ current: number; end: number }>(MAX_APPS)

  incr(app: string, done: (error: Error | null, result: { current: number; ttl: number }) => void) {
    const now = performance.now()
    const last = this.#windows.get(app)
    const window = last && last.end > now ? last : { current: 0, end: now + WINDOW_MS }
    window.current += 1
    this.#windows.set(app, window)
    done(null, { current: window.current, ttl: window.end - now })
  }

  child() {
    return this
  }
}

/** Limit on the requests of each app per minute. All tokens of an app share it. */
export interface Quota {
  /** Counts a request of its app, and sets the headers of its quota. @throws ProblemError 429 if none is left */
  charge(reply: FastifyReply): Promise<void>
}

/** Creates the quota of the settings. */
export async function openQuota(
  app: FastifyInstance,
  config: Config,
  secrets: Pick<SecretFiles, 'newest'>,
): Promise<Quota> {
  const { RATE_LIMIT_PER_MINUTE: perMinute, REDIS_URL: url } = config
  const shared = url === undefined ? undefined : await connectRedis(url, secrets)
  const redis = shared?.redis
  app.addHook('onClose', async () => redis?.disconnect())
  await app.register(rateLimit, {
    global: false,
    max: perMinute,
    timeWindow: WINDOW_MS,
    keyGenerator: ({ recorder }) => String(recorder.facts.appId),
    ...(redis ? { redis, nameSpace: KEYS } : { store: Windows }),
  })
  const increment = app.createRateLimit()
  const uncounted = new Counter({
    name: 'quota_uncounted_requests_total',
    help: 'Requests that passed uncounted, because Redis did not respond. Only with a quota.',
    registers: app.metrics ? [app.metrics] : [],
  })
  let quietUntil = Number.NEGATIVE_INFINITY
  const fail = (error: unknown) => {
    uncounted.inc()
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + QUIET_MS
    app.log.warn({ err: shared?.causeOf(error) ?? error }, 'requests are not counted')
  }
  return {
    async charge(reply) {
      reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_MS / 1000}`)
      const count = await increment(reply.request).catch(fail)
      if (!count || count.isAllowed || count.ttl < 0 || count.ttl > WINDOW_MS + 1) {
        // Another program has written a value that is no number, or the time of a key. The app begins a new window.
        redis?.del(`${KEYS}${reply.request.recorder.facts.appId}`).catch(() => {})
        return
      }
      const seconds = Math.max(1, Math.ceil(count.ttl / 1000))
      reply.header('ratelimit', `"app";r=${count.remaining};t=${seconds}`)
      if (!count.isExceeded) return
      const detail = `An app may send ${perMinute} requests a minute.`
      throw problem('too_many_requests', { detail, headers: { 'retry-after': String(seconds) } })
    },
  }
}
