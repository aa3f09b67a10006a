import type { FastifyInstance } from 'fastify'
import * as jose from 'jose'
import { Counter, Gauge } from 'prom-client'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { problem } from '../schemas/problem.ts'

/** The identity provider's keys cannot be fetched or used. A later request may succeed. */
export class IdentityProviderUnavailable extends Unavailable {
  override name = 'IdentityProviderUnavailable'
  override get reason() {
    return 'identity_provider' as const
  }
}

/** Asymmetric signatures only. With a shared secret, the service could sign tokens itself. */
const algorithms = [
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
]

/** Maximum difference between the clocks of the provider and of this machine, in seconds. */
const clockTolerance = 10

/** Verified tokens that are remembered. */
const MAX_CACHED = 10_000

/** Time for which a token is not verified again, in ms. A withdrawn key stays valid as long. */
const CACHED_FOR_MS = 60_000

/** Time without a fetch after a failure, in ms. */
const RETRY_MS = 1_000

type App = Pick<FastifyInstance, 'log' | 'metrics'>
export type IdentityProvider = ReturnType<typeof identityProvider>

/** Returns a function that finds the client id of a token. @throws ProblemError 401, IdentityProviderUnavailable */
export function identityProvider(config: Config, app: App) {
  // If a value is undefined, jose does not check the claim.
  const issuer = String(config.AUTH_ISSUER)
  const audience = String(config.AUTH_AUDIENCE)
  // RFC 9068 names the first one.
  const claims = [config.AUTH_CLIENT_ID_CLAIM ?? ['client_id', 'azp']].flat()
  const keys = signingKeys(config, app)
  const required = { issuer, audience, algorithms, clockTolerance, requiredClaims: ['exp'] }
  const verified = new FifoMap<{ clientId: string; expiresAt: number }>(MAX_CACHED, CACHED_FOR_MS)
  return async (token: string): Promise<string> => {
    const hash = tokenHash(token).toString('base64')
    const cached = verified.get(hash)
    if (cached !== undefined && Date.now() < cached.expiresAt) return cached.clientId
    const { payload, protectedHeader } = await jose.jwtVerify(token, keys, required).catch(reject)
    const clientId = claims.map((name) => payload[name]).find((claim) => claim !== undefined)
    if (!isClientId(clientId) || !isAccessToken(protectedHeader, payload))
      throw problem('invalid_token')
    verified.set(hash, { clientId, expiresAt: (Number(payload.exp) + clockTolerance) * 1000 })
    return clientId
  }
}

function reject(error: unknown): never {
  if (error instanceof jose.errors.JWTExpired) throw problem('expired_token')
  if (error instanceof jose.errors.JOSEError) throw problem('invalid_token')
  throw error
}

/** Excludes ID and logout tokens, and tokens bound to a key of the client (`cnf`), which the service cannot check. */
function isAccessToken({ typ }: jose.JWTHeaderParameters, payload: jose.JWTPayload): boolean {
  // Many providers set no type, or a general one, instead of that of RFC 9068.
  const types = ['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']
  if (typ !== undefined && !types.includes(String(typ).toLowerCase())) return false
  return ['at_hash', 'c_hash', 'events', 'cnf'].every((claim) => payload[claim] === undefined)
}

/** True for a text that PostgreSQL can compare with app.client_id. */
const isClientId = (id: unknown): id is string =>
  typeof id === 'string' && id.isWellFormed() && !id.includes('\0')

const { JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported } = jose.errors
/** Errors of a valid set that has no key for the token. */
const NO_KEY = [JWKSNoMatchingKey, JWKSMultipleMatchingKeys, JOSENotSupported]

/** Fetches the public keys of the provider on first use, and then every ten minutes. Returns a function that finds one. */
function signingKeys({ AUTH_JWKS_URL = '' }: Config, { log, metrics }: App): jose.JWTVerifyGetKey {
  const registers = metrics ? [metrics] : []
  const failures = new Counter({
    name: 'identity_provider_failures_total',
    help: 'Failed fetches of the keys of the identity provider. Only with a provider.',
    registers,
  })
  const cache: Partial<jose.ExportedJWKSCache> = {}
  new Gauge({
    name: 'identity_provider_keys_age_seconds',
    help: 'Time since the last successful fetch of these keys. Only with a provider.',
    registers,
    collect() {
      if (cache.uat !== undefined) this.set((Date.now() - cache.uat) / 1000)
    },
  })
  /** On performance.now()'s clock, which does not step back. */
  let retryAt = 0
  const isPaused = () => performance.now() < retryAt
  const keys = jose.createRemoteJWKSet(new URL(AUTH_JWKS_URL), {
    timeoutDuration: 3_000,
    // Between two fetches for unknown key ids.
    cooldownDuration: 10_000,
    // The keys stay in use while the provider does not respond.
    cacheMaxAge: 86_400_000,
    [jose.jwksCache]: cache as jose.ExportedJWKSCache,
    [jose.customFetch]: (...request) =>
      isPaused() ? Promise.reject(new Error('the last one failed')) : fetch(...request),
  })
  const report = (err: unknown) => {
    if (isPaused()) return
    failures.inc()
    retryAt = performance.now() + RETRY_MS
    log.warn({ err }, 'the keys of the identity provider could not be fetched')
  }
  setInterval(() => cache.uat && keys.reload().catch(report), 600_000).unref()
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (cause) {
      if (NO_KEY.some((type) => cause instanceof type)) throw cause
      report(cause)
      throw new IdentityProviderUnavailable('the identity provider has no usable keys', { cause })
    }
  }
}
