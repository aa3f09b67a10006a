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
import { ExpiredToken, InvalidToken } from '../queries/caller.ts'
import { type SigningKeys, type SigningKeysOptions, signingKeys } from './jwks.ts'

interface Verified {
  clientId: string
  /** When the token ends, in ms since 1970. */
  until: number
}

/** How many tokens are remembered, and for how long, in ms. */
const MOST = 10_000
const MEMORY = 60_000

/**
 * What tokens of the identity provider were found to say within the last minute, by their hash, so
 * that their signatures are not computed at every request. A key that the provider withdraws thus
 * counts for one minute more; an app that loses its client id, which the database tells at every
 * request, does not.
 */
function verifiedTokens() {
  const tokens = new FifoMap<Verified>(MOST, MEMORY)
  return {
    async clientIdOf(token: string, verify: () => Promise<Verified>): Promise<string> {
      const hash = tokenHash(token).toString('base64')
      const known = tokens.get(hash)
      if (known !== undefined && Date.now() < known.until) return known.clientId
      const verified = await verify()
      tokens.set(hash, verified)
      return verified.clientId
    },
  }
}

/**
 * Verifies an access token of an identity provider.
 * @returns the client id that the provider knows the calling app by; whether an app of ours has it is
 * for the database to say
 * @throws ExpiredToken, InvalidToken for every other fault of the token, or IdentityProviderUnavailable
 */
export type IdentityProvider = (token: string) => Promise<string>

export interface IdentityProviderOptions {
  /** The `iss` and the `aud` that a token must have. */
  issuer: string
  audience: string
  /** The claim with the client id; where none is named, `client_id` (RFC 9068), or else `azp`. */
  clientIdClaim: string | undefined
  keys: JWTVerifyGetKey
}

/** The provider that the settings name, if they name one. */
export function configuredProvider(
  config: Config,
  { log, metrics }: { log: SigningKeysOptions['log']; metrics: Registry | undefined },
): IdentityProvider | undefined {
  const { AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience, AUTH_JWKS_URL: url } = config
  if (issuer === undefined || audience === undefined || url === undefined) return undefined
  const clientIdClaim = config.AUTH_CLIENT_ID_CLAIM
  const keys = signingKeys({ url, log })
  if (metrics) registerKeys(keys, metrics)
  return identityProvider({ issuer, audience, clientIdClaim, keys: keys.find })
}

function registerKeys(keys: SigningKeys, registry: Registry): void {
  new Counter({
    name: 'identity_provider_failures_total',
    help: 'How often the identity provider was asked for its keys in vain.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(keys.failures())
    },
  })
  new Gauge({
    name: 'identity_provider_keys_age_seconds',
    help: 'Since the identity provider was last asked for its keys with success.',
    registers: [registry],
    collect() {
      const age = (Date.now() - keys.fetchedAt()) / 1000
      if (Number.isFinite(age)) this.set(age)
      else this.reset()
    },
  })
}

/** Signatures that only the provider can make: with a shared secret, whoever verifies can sign. */
const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'].concat(
  ['RS256', 'RS384', 'RS512'],
  ['PS256', 'PS384', 'PS512'],
)

/** How far the clocks of the provider and of this machine may differ, in seconds. */
const TOLERANCE = 10

export function identityProvider(options: IdentityProviderOptions): IdentityProvider {
  const { issuer, audience, clientIdClaim, keys } = options
  const claims = clientIdClaim === undefined ? ['client_id', 'azp'] : [clientIdClaim]
  const rules = {
    issuer,
    audience,
    algorithms: ALGORITHMS,
    clockTolerance: TOLERANCE,
    requiredClaims: ['exp'],
  }
  const tokens = verifiedTokens()
  return (token) =>
    tokens.clientIdOf(token, async () => {
      const { payload, protectedHeader } = await jwtVerify(token, keys, rules).catch(refuse)
      const clientId = clientIdOf(payload, claims)
      if (clientId === undefined || !isAccessToken(protectedHeader, payload)) {
        throw new InvalidToken()
      }
      return { clientId, until: (Number(payload.exp) + TOLERANCE) * 1000 }
    })
}

function refuse(error: unknown): never {
  if (error instanceof errors.JWTExpired) throw new ExpiredToken()
  if (error instanceof errors.JOSEError) throw new InvalidToken()
  throw error
}

/**
 * An access token says that it is one (RFC 9068) or, with many providers, nothing in particular. What
 * was made for another purpose is refused, even where the same key signed it for the same audience; so
 * is a token that is bound to a key of the client (`cnf`), as nothing here proves that it has the key.
 */
function isAccessToken({ typ }: JWTHeaderParameters, payload: JWTPayload): boolean {
  const types = ['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']
  if (typ !== undefined && !types.includes(String(typ).toLowerCase())) return false
  return ['at_hash', 'c_hash', 'events', 'cnf'].every((claim) => payload[claim] === undefined)
}

/** No longer than app.client_id can be, and something that PostgreSQL takes for text. */
function clientIdOf(payload: JWTPayload, claims: string[]): string | undefined {
  const value = claims.map((name) => payload[name]).find((claim) => claim !== undefined)
  if (typeof value !== 'string' || value === '' || value.length > 255) return undefined
  return value.isWellFormed() && !value.includes('\0') ? value : undefined
}
