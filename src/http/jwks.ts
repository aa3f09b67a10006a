import type { FastifyBaseLogger } from 'fastify'
import * as jose from 'jose'
import { Counter, Gauge, type Registry } from 'prom-client'
import { Unavailable } from '../limits/unavailable.ts'

/** The identity provider's keys cannot be fetched or used. A later request may succeed. */
export class IdentityProviderUnavailable extends Unavailable {
  override name = 'IdentityProviderUnavailable'
  override get reason() {
    return 'identity_provider' as const
  }
}

const REFRESH_MS = 600_000
/** Time without a fetch after a failure, in ms. */
const RETRY_MS = 1_000

/**
 * In ms: between two fetches for unknown key ids, of one fetch, and of keys in use while the provider does not respond.
 */
const TIMES = { cooldownDuration: 10_000, timeoutDuration: 3_000, cacheMaxAge: 86_400_000 }

const { JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported } = jose.errors
/** Errors of a token without a key in a valid set. */
const NO_KEY = [JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported]

/**
 * Fetches the public keys of an identity provider on first use, and then every ten minutes.
 * @returns a function that finds a key. It throws IdentityProviderUnavailable, or an error of jose if there is no key
 */
export function signingKeys(
  url: string,
  log: Pick<FastifyBaseLogger, 'warn'>,
  metrics: Registry | undefined,
): jose.JWTVerifyGetKey {
  const registers = metrics ? [metrics] : []
  const named = (name: string, help: string) => ({ name, help, registers })
  const failures = new Counter(
    named('identity_provider_failures_total', 'Failed fetches of the keys.'),
  )
  const cache: Partial<jose.ExportedJWKSCache> = {}
  new Gauge({
    ...named(
      'identity_provider_keys_age_seconds',
      'Time since the last successful fetch of the keys.',
    ),
    collect() {
      if (cache.uat !== undefined) this.set((Date.now() - cache.uat) / 1000)
    },
  })
  let retryAt = 0
  const keys = jose.createRemoteJWKSet(new URL(url), {
    ...TIMES,
    [jose.jwksCache]: cache as jose.ExportedJWKSCache,
    [jose.customFetch]: async (...request) => {
      if (Date.now() < retryAt) throw new Error('the last fetch has failed')
      return fetch(...request)
    },
  })
  const fail = (cause: unknown): never => {
    if (Date.now() >= retryAt) {
      failures.inc()
      retryAt = Date.now() + RETRY_MS
      log.warn({ err: cause }, 'the keys of the identity provider could not be fetched')
    }
    throw new IdentityProviderUnavailable('the identity provider has no usable keys', { cause })
  }
  const refresh = () => {
    if (cache.uat !== undefined)
      keys
        .reload()
        .catch(fail)
        .catch(() => {})
  }
  setInterval(refresh, REFRESH_MS).unref()
  return (header, token) =>
    keys(header, token).catch((error) => {
      if (NO_KEY.some((type) => error instanceof type)) throw error
      return fail(error)
    })
}
