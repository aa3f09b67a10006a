import type { FastifyBaseLogger } from 'fastify'
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose'
import { IdentityProviderUnavailable } from './errors.ts'

export interface SigningKeys {
  /**
   * The key of a token.
   * @throws IdentityProviderUnavailable, or an error of jose when the set has no key for the token
   */
  find: JWTVerifyGetKey
  /** When the provider was last asked with success, in ms since 1970; -Infinity for never. */
  fetchedAt(): number
  /** How often it was asked in vain. */
  failures(): number
}

export interface SigningKeysOptions {
  /** Where the provider publishes its keys, as a JSON Web Key Set (RFC 7517). */
  url: string
  log: Pick<FastifyBaseLogger, 'warn'>
  /** How long a key that is not in the set is taken for one that does not exist, in ms. */
  cooldownMs?: number
  /** How long a failed fetch is not repeated, in ms. */
  retryMs?: number
  /** How long one fetch may take, in ms. */
  timeoutMs?: number
  /** How old the set may be before it is fetched again, in ms. Hardly anybody waits for that. */
  refreshMs?: number
}

/** A set that the provider has not confirmed for this long is no longer believed, in ms. */
const OLDEST = 24 * 60 * 60 * 1000
/** How much longer the set serves while it is fetched again, where that was not tried in vain, in ms. */
const MEANWHILE = 60_000
/** More than any provider's set; what is longer is not read to its end, in bytes. */
const LARGEST = 262_144

/**
 * The public keys of an identity provider, fetched when they are first needed. While the provider is
 * out of reach, the keys that are known go on to serve. At most one fetch is under way, however many
 * requests wait for it, and made-up key ids do not cause more than one per cooldown.
 */
export function signingKeys(options: SigningKeysOptions): SigningKeys {
  const { url, cooldownMs = 10_000, timeoutMs = 3_000, refreshMs = 600_000 } = options
  const source = guardedFetch(options)
  const remote = createRemoteJWKSet(new URL(url), {
    cooldownDuration: cooldownMs,
    timeoutDuration: timeoutMs,
    // Keys do not go stale by themselves here: with this, jose would refuse what it still has.
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: source.fetch,
  })
  const find: JWTVerifyGetKey = async (header, token) => {
    const now = Date.now()
    const age = now - source.fetchedAt()
    if (age > refreshMs) {
      const isQuiet = now - source.triedAt() > MEANWHILE
      const reload = remote.reload()
      const attempt = reload.catch(() => {})
      if (age > OLDEST) await reload
      // After hours without a token, a key may have been withdrawn long ago.
      else if (age > refreshMs + MEANWHILE && isQuiet) await attempt
    }
    try {
      return await remote(header, token)
    } catch (error) {
      if (isOfToken(error)) throw error
      if (error instanceof IdentityProviderUnavailable) throw error
      throw new IdentityProviderUnavailable('a key of the identity provider cannot be used', {
        cause: error,
      })
    }
  }
  return { find, fetchedAt: source.fetchedAt, failures: source.failures }
}

/** Whether the token is to blame for not having a key, and not the set. */
function isOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  )
}

/** Fetches the set with a limit on its size, and not again for a while when that failed. */
function guardedFetch({ log, retryMs = 1_000 }: SigningKeysOptions) {
  let retryAt = 0
  let fetchedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let failures = 0
  const guarded: FetchImplementation = async (url, init) => {
    if (Date.now() < retryAt)
      throw new IdentityProviderUnavailable('the last fetch of keys has just failed')
    triedAt = Date.now()
    try {
      const text = await readKeys(await fetch(url, init))
      // Whether it is a set at all is found out here, where the failure counts as one.
      createLocalJWKSet(JSON.parse(text))
      fetchedAt = Date.now()
      return new Response(text)
    } catch (cause) {
      failures += 1
      retryAt = Date.now() + retryMs
      log.warn({ err: cause }, 'the keys of the identity provider could not be fetched')
      throw new IdentityProviderUnavailable('the identity provider did not answer', { cause })
    }
  }
  return {
    fetch: guarded,
    fetchedAt: () => fetchedAt,
    triedAt: () => triedAt,
    failures: () => failures,
  }
}

async function readKeys(response: Response): Promise<string> {
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`the key set was answered with status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > LARGEST) throw new Error(`the key set is longer than ${LARGEST} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
