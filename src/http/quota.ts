import { setTimeout as sleep } from 'node:timers/promises'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Redis } from 'ioredis'
import { Counter, type Registry } from 'prom-client'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import type { Database } from '../postgres/database.ts'
import type { Caller } from '../queries/caller.ts'
import { confirmCaller } from '../queries/caller.ts'
import { HttpError } from './errors.ts'

/** How long a request may wait for Redis, in ms: longer than that, and it passes uncounted. */
const PATIENCE = 500

/**
 * A connection to the Redis that counts for all instances. A command is answered soon or fails: nothing
 * is queued for a Redis that is away, and nothing is sent twice. It connects again by itself.
 */
async function connectRedis(url: string): Promise<Redis> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: PATIENCE,
    // A connection on which nothing is answered is closed, since it may be one of a host that is gone.
    socketTimeout: 2_000,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(100 * attempt, 1_000),
    connectionName: 'investment-data-query-service',
  })
  // Each request that could not be counted tells of it; by itself, a lost connection is no news.
  redis.on('error', () => {})
  await Promise.race([redis.connect().catch(() => {}), sleep(1_000, undefined, { ref: false })])
  return redis
}

export interface CounterOptions {
  /** How many requests an app may send in a minute. */
  perMinute: number
  /** The Redis that counts for all instances; without it, each one counts for itself. */
  redisUrl: string | undefined
}

const WINDOW_SECONDS = 60

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
async function openCounter(app: FastifyInstance, options: CounterOptions) {
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

/** How many requests an app may send, and how many it has sent (contract 19). */
export interface Quota {
  /**
   * Takes one request off the quota of the app that `request.appId` names, and tells in the headers
   * what is left.
   * @throws HttpError when nothing was left
   */
  charge(reply: FastifyReply): Promise<void>
}

interface QuotaOptions extends CounterOptions {
  db: Database
}

/** The quota that the settings give to each app, if they give one. */
export async function configuredQuota(
  app: FastifyInstance,
  { db, config }: { db: Database; config: Config },
): Promise<Quota | undefined> {
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  if (perMinute === 0) return undefined
  return openQuota(app, { db, perMinute, redisUrl: config.REDIS_URL })
}

/** How many apps and callers are kept in mind; the oldest ones are forgotten. */
const MOST_CALLERS = 50_000

/**
 * Limits the apps that call the routes of `app`. A request counts once the database has said whose it
 * is, so that all tokens of an app share its quota and a stranger uses up nobody's. An app that has
 * nothing left is remembered, and is refused before anything is read for it.
 */
async function openQuota(app: FastifyInstance, options: QuotaOptions): Promise<Quota> {
  const { db, perMinute } = options
  const count = await openCounter(app, options)
  const appOf = new FifoMap<string>(MOST_CALLERS)
  const spentUntil = new FifoMap<number>(MOST_APPS)

  const refuseSpent = (reply: FastifyReply, appId: string | undefined) => {
    const milliseconds = (spentUntil.get(appId) ?? 0) - Date.now()
    if (milliseconds > 0) refuse(reply, perMinute, milliseconds)
  }
  app.addHook('onRequest', async (request, reply) => {
    const until = spentUntil.get(appOf.get(nameOf(request.caller))) ?? 0
    if (until <= Date.now()) return
    // What is kept in mind decides only whether to ask: who it is, the database says.
    request.appId = await confirmCaller(db, request.caller)
    refuseSpent(reply, request.appId)
  })

  return {
    async charge(reply) {
      const { request } = reply
      const name = nameOf(request.caller)
      if (appOf.get(name) !== request.appId) appOf.set(name, String(request.appId))
      reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_SECONDS}`)
      const state = await count(request)
      if (state === undefined) return
      if (state.exceeded) {
        spentUntil.set(request.appId, Date.now() + state.windowEndsInMs)
        refuse(reply, perMinute, state.windowEndsInMs)
      }
      tellRest(reply, state.remaining, state.windowEndsInMs)
    },
  }
}

function nameOf(caller: Caller): string {
  return 'tokenHash' in caller ? caller.tokenHash.toString('base64') : `client ${caller.clientId}`
}

function tellRest(reply: FastifyReply, remaining: number, milliseconds: number): number {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
  reply.header('ratelimit', `"app";r=${remaining};t=${seconds}`)
  return seconds
}

function refuse(reply: FastifyReply, perMinute: number, milliseconds: number): never {
  const seconds = tellRest(reply, 0, milliseconds)
  reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_SECONDS}`)
  throw new HttpError('too_many_requests', `An app may send ${perMinute} requests a minute.`, {
    headers: { 'retry-after': String(seconds) },
  })
}
