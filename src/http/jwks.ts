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

export interface SigningKeysOptions {
  url: string
  log: Pick<FastifyBaseLogger, 'warn'>
  /** Minimum time between two fetches for unknown key ids, in ms. */
  cooldownMs?: number
  retryMs?: number
  timeoutMs?: number
}

/** Age after which the service fetches the keys again, usually in the background, in ms. */
const REFRESH_MS = 600_000
/** Time after REFRESH_MS during which the service verifies tokens without waiting for the fetch. */
const BACKGROUND_MS = 60_000
/** Age after which the keys are not used unless the provider confirms them, in ms. */
const MAX_AGE_MS = 24 * 60 * 60 * 1000
const MAX_SET_BYTES = 262_144

/** Errors that the caller handles: an outage, or a token without a key in a valid set. */
const HANDLED = [
  IdentityProviderUnavailable,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
  errors.JOSENotSupported,
]

/**
 * Fetches the public keys of an identity provider on first use. If the provider is unreachable, the known keys remain
 * in use. Concurrent requests share one fetch, and made-up key ids cause at most one per cooldown.
 */
export function signingKeys(options: SigningKeysOptions) {
  const { url, log, cooldownMs = 10_000, retryMs = 1_000, timeoutMs = 3_000 } = options
  let fetchedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY
  let retryAt = 0
  let failures = 0

  const guardedFetch: FetchImplementation = async (url, init) => {
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
  const keys = createRemoteJWKSet(new URL(url), {
    cooldownDuration: cooldownMs,
    timeoutDuration: timeoutMs,
    cacheMaxAge: MAX_AGE_MS,
    [customFetch]: guardedFetch,
  })

  /** Fetches keys that are old but usable. jose fetches those that are missing or too old. */
  async function refresh() {
    const age = Date.now() - fetchedAt
    if (!keys.fresh || age <= REFRESH_MS) return
    const triedRecently = Date.now() - triedAt <= BACKGROUND_MS
    const settled = keys.reload().catch(() => {})
    // After hours without a token, the provider may have withdrawn a key.
    if (age > REFRESH_MS + BACKGROUND_MS && !triedRecently) await settled
  }

  /** @throws IdentityProviderUnavailable, or an error of jose if the set has no key for the token */
  const find: JWTVerifyGetKey = async (header, token) => {
    await refresh()
    try {
      return await keys(header, token)
    } catch (error) {
      if (HANDLED.some((type) => error instanceof type)) throw error
      const message = 'a key of the identity provider cannot be used'
      throw new IdentityProviderUnavailable(message, { cause: error })
    }
  }
  return {
    find,
    /** Time of the last successful fetch, in ms since 1970. -Infinity before the first one. */
    fetchedAt: () => fetchedAt,
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
