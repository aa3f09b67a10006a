import { FifoMap } from 'toad-cache'
import { tokenHash } from '../database/token-hash.ts'

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
export function verifiedTokens() {
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
