import {
  errors,
  type JWTHeaderParameters,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { Counter, Gauge, type Registry } from 'prom-client'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { problem } from '../schemas/problem.ts'
import { type SigningKeysOptions, signingKeys } from './jwks.ts'

/**
 * Verifies an access token of the identity provider. Returns the client id of the calling app.
 * @throws ProblemError 401, or IdentityProviderUnavailable
 */
export type IdentityProvider = (token: string) => Promise<string>

export function configuredProvider(
  config: Config,
  { log, metrics }: { log: SigningKeysOptions['log']; metrics: Registry | undefined },
): IdentityProvider | undefined {
  const { AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, AUTH_JWKS_URL: url } = config
  if (issuer === undefined || audience === undefined || url === undefined) return undefined
  const keys = signingKeys({ url, log })
  if (metrics) keyMetrics(keys, metrics)
  const clientIdClaim = config.AUTH_CLIENT_ID_CLAIM
  return identityProvider({ issuer, audience, clientIdClaim, keys: keys.find })
}

function keyMetrics(keys: ReturnType<typeof signingKeys>, registry: Registry): void {
  new Counter({
    name: 'identity_provider_failures_total',
    help: 'Failed fetches of the keys of the identity provider.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(keys.failures())
    },
  })
  new Gauge({
    name: 'identity_provider_keys_age_seconds',
    help: 'Time since the last successful fetch of these keys.',
    registers: [registry],
    collect() {
      const age = (Date.now() - keys.fetchedAt()) / 1000
      if (Number.isFinite(age)) this.set(age)
    },
  })
}

/** Asymmetric signatures only. With a shared secret, the service could sign tokens itself. */
const algorithms = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
]

/** Maximum difference between the clocks of the provider and of this machine, in seconds. */
const clockTolerance = 10

/** Maximum number of tokens that are not verified again. */
const MAX_CACHED = 10_000
/** Time for which they are not, in ms. A withdrawn key stays valid as long. */
const CACHED_FOR_MS = 60_000

/** Signatures that are verified at once: each takes 0.2 ms of one of the four threads that compress, too. */
const SIGNATURES = 2

/** Places that requests take in the order of their arrival. MAX_REQUESTS limits how many wait. */
class Turns {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(places: number) {
    this.#free = places
  }

  /** Waits for a place. The caller must call leave(). */
  async enter(): Promise<void> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#free -= 1
  }

  leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#free += 1
  }
}

interface IdentityProviderOptions {
  issuer: string
  audience: string
  /** Claim with the client id. Default: `client_id` (RFC 9068), else `azp`. */
  clientIdClaim: string | undefined
  keys: JWTVerifyGetKey
}

export function identityProvider(options: IdentityProviderOptions): IdentityProvider {
  const { issuer, audience, clientIdClaim, keys } = options
  const claims = clientIdClaim === undefined ? ['client_id', 'azp'] : [clientIdClaim]
  const required = { issuer, audience, algorithms, clockTolerance, requiredClaims: ['exp'] }
  const verified = new FifoMap<{ clientId: string; expiresAt: number }>(MAX_CACHED, CACHED_FOR_MS)
  const signatures = new Turns(SIGNATURES)
  return async (token) => {
    const hash = tokenHash(token).toString('base64')
    const cached = verified.get(hash)
    if (cached !== undefined && Date.now() < cached.expiresAt) return cached.clientId
    let entered = false
    // jose checks `alg` before. A wrong `alg` or `kid` costs 0.04 ms, and waits for no turn.
    const find: JWTVerifyGetKey = async (header, jws) => {
      const key = await keys(header, jws)
      await signatures.enter()
      entered = true
      return key
    }
    const { payload, protectedHeader } = await jwtVerify(token, find, required)
      .catch(rejectToken)
      .finally(() => entered && signatures.leave())
    const clientId = clientIdOf(payload, claims)
    if (clientId === undefined || !isAccessToken(protectedHeader, payload))
      throw problem('invalid_token')
    const expiresAt = (Number(payload.exp) + clockTolerance) * 1000
    verified.set(hash, { clientId, expiresAt })
    return clientId
  }
}

function rejectToken(error: unknown): never {
  if (error instanceof errors.JWTExpired) throw problem('expired_token')
  if (error instanceof errors.JOSEError) throw problem('invalid_token')
  throw error
}

/**
 * Excludes ID and logout tokens, and tokens bound to a key of the client (`cnf`): the service cannot check
 * that key. Many providers set no type, or a general one, instead of the type of RFC 9068.
 */
function isAccessToken({ typ }: JWTHeaderParameters, payload: JWTPayload): boolean {
  const types = ['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']
  if (typ !== undefined && !types.includes(String(typ).toLowerCase())) return false
  return ['at_hash', 'c_hash', 'events', 'cnf'].every((claim) => payload[claim] === undefined)
}

/** Returns a client id that PostgreSQL can compare with app.client_id. */
function clientIdOf(payload: JWTPayload, claims: string[]): string | undefined {
  const value = claims.map((name) => payload[name]).find((claim) => claim !== undefined)
  const isText = typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
  return isText ? value : undefined
}
