import type { FastifyInstance } from 'fastify'
import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { problem } from '../schemas/problem.ts'
import { signingKeys } from './jwks.ts'

/**
 * Verifies an access token of the identity provider. Returns the client id of the calling app.
 * @throws ProblemError 401, or IdentityProviderUnavailable
 */
export type IdentityProvider = (token: string) => Promise<string>

/** Asymmetric signatures only. With a shared secret, the service could sign tokens itself. */
const algorithms = [
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
]

/** Maximum difference between the clocks of the provider and of this machine, in seconds. */
const clockTolerance = 10

/** Tokens that are not verified again, and the time for which they are not, in ms. A withdrawn key stays valid as long. */
const [MAX_CACHED, CACHED_FOR_MS] = [10_000, 60_000]

/** Returns the identity provider of the settings, if there is one. */
export function identityProvider(
  config: Config,
  { log, metrics }: Pick<FastifyInstance, 'log' | 'metrics'>,
): IdentityProvider | undefined {
  const { AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, AUTH_JWKS_URL: url } = config
  if (issuer === undefined || audience === undefined || url === undefined) return undefined
  const { AUTH_CLIENT_ID_CLAIM: ownClaim } = config
  // RFC 9068 names the first one.
  const claims = ownClaim === undefined ? ['client_id', 'azp'] : [ownClaim]
  const keys = signingKeys(url, log, metrics)
  const required = { issuer, audience, algorithms, clockTolerance, requiredClaims: ['exp'] }
  const verified = new FifoMap<{ clientId: string; expiresAt: number }>(MAX_CACHED, CACHED_FOR_MS)
  return async (token) => {
    const hash = tokenHash(token).toString('base64')
    const cached = verified.get(hash)
    if (cached !== undefined && Date.now() < cached.expiresAt) return cached.clientId
    const { payload, protectedHeader } = await jwtVerify(token, keys, required).catch(reject)
    const clientId = claims.map((name) => payload[name]).find((claim) => claim !== undefined)
    if (!isClientId(clientId) || !isAccessToken(protectedHeader, payload))
      throw problem('invalid_token')
    verified.set(hash, { clientId, expiresAt: (Number(payload.exp) + clockTolerance) * 1000 })
    return clientId
  }
}

function reject(error: unknown): never {
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

/** True for a text that PostgreSQL can compare with app.client_id. */
const isClientId = (id: unknown): id is string =>
  typeof id === 'string' && id.isWellFormed() && !id.includes('\0')
