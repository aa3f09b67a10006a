import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'

/** How long a request may wait for Redis, in ms: longer than that, and it passes uncounted. */
const PATIENCE = 500

/**
 * A connection to the Redis that counts for all instances. A command is answered soon or fails: nothing
 * is queued for a Redis that is away, and nothing is sent twice. It connects again by itself.
 */
export async function connectRedis(url: string): Promise<Redis> {
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
