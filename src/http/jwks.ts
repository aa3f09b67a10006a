import type { FastifyBaseLogger } from 'fastify'
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose'
import { IdentityProviderUnavailable } from './error-handler.ts'

export interface SigningKeys {
  /**
   * Finds the key of a token.
   * @throws IdentityProviderUnavailable, or an error of jose if the set has no key for the token
   */
  find: JWTVerifyGetKey
  /** Time of the last successful fetch, in ms since 1970. -Infinity before the first one. */
  fetchedAt(): number
  /** Number of failed fetches. */
  failures(): number
}

export interface SigningKeysOptions {
  /** URL of the JSON Web Key Set (RFC 7517). */
  url: string
  log: Pick<FastifyBaseLogger, 'warn'>
  /** Minimum time between two fetches for unknown key ids, in ms. */
  cooldownMs?: number
  /** Time after a failed fetch before the next one, in ms. */
  retryMs?: number
  /** Timeout of a fetch, in ms. */
  timeoutMs?: number
  /** Age after which the service fetches the set again, usually in the background, in ms. */
  refreshMs?: number
}

/** Age after which the keys are not used unless the provider confirms them. */
const MAX_AGE_MS = 24 * 60 * 60 * 1000
/** Time after refreshMs during which the service verifies tokens without waiting for the fetch. */
const BACKGROUND_MS = 60_000
const MAX_SET_BYTES = 262_144

/**
 * Fetches the public keys of an identity provider on first use. If the provider is unreachable, the
 * known keys remain in use. Concurrent requests share one fetch, and made-up key ids cause at most one
 * per cooldown.
 */
export function signingKeys(options: SigningKeysOptions): SigningKeys {
  const { url, cooldownMs = 10_000, timeoutMs = 3_000, refreshMs = 600_000 } = options
  const source = guardedFetch(options)
  const remote = createRemoteJWKSet(new URL(url), {
    cooldownDuration: cooldownMs,
    timeoutDuration: timeoutMs,
    // This module decides when keys are too old. jose would reject keys that it still has.
    cacheMaxAge: Number.POSITIVE_INFINITY,
    [customFetch]: source.fetch,
  })
  const refresh = async () => {
    const now = Date.now()
    const age = now - source.fetchedAt()
    if (age <= refreshMs) return
    const triedRecently = now - source.triedAt() <= BACKGROUND_MS
    const reload = remote.reload()
    const settled = reload.catch(() => {})
    if (age > MAX_AGE_MS) await reload
    // After hours without a token, the provider may have withdrawn a key.
    else if (age > refreshMs + BACKGROUND_MS && !triedRecently) await settled
  }
  const find: JWTVerifyGetKey = async (header, token) => {
    await refresh()
    try {
      return await remote(header, token)
    } catch (error) {
      if (isTokenError(error) || error instanceof IdentityProviderUnavailable) throw error
      const message = 'a key of the identity provider cannot be used'
      throw new IdentityProviderUnavailable(message, { cause: error })
    }
  }
  return { find, fetchedAt: source.fetchedAt, failures: source.failures }
}

/** True if the token has no key in a valid set. */
function isTokenError(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  )
}

/** Fetches the set with a limit of its size. After a failure, waits before the next fetch. */
function guardedFetch({ log, retryMs = 1_000 }: SigningKeysOptions) {
  let retryAt = 0
  let fetchedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let failures = 0
  const guarded: FetchImplementation = async (url, init) => {
    if (Date.now() < retryAt) throw new IdentityProviderUnavailable('the last fetch of keys failed')
    triedAt = Date.now()
    try {
      const text = await readKeys(await fetch(url, init))
      // Throws if the response is not a key set, which counts as a failure.
      createLocalJWKSet(JSON.parse(text))
      fetchedAt = Date.now()
      return new Response(text)
    } catch (cause) {
      failures += 1
      retryAt = Date.now() + retryMs
      log.warn({ err: cause }, 'the keys of the identity provider could not be fetched')
      throw new IdentityProviderUnavailable('the identity provider is unreachable', { cause })
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
    throw new Error(`the key set has status ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.length
    if (length > MAX_SET_BYTES) throw new Error(`the key set exceeds ${MAX_SET_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}
