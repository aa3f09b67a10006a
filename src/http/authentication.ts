import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { tokenHash } from '../postgres/tokens.ts'
import type { Caller } from '../queries/caller.ts'
import { unauthorized } from './errors.ts'
import { headerCount } from './headers.ts'
import type { IdentityProvider } from './identity-provider.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Credentials of the request. Only the database shows which app they belong to, if any. */
    caller: Caller
  }
}

// RFC 6750 and 7235: scheme in any case, one or more spaces, one token68.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

// Compact serialization of a signed token (RFC 7519). App tokens contain no dot.
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

/**
 * Reads the Authorization header (section 5). With an identity provider, verifies its tokens. The
 * database looks up all other tokens as app tokens.
 */
export const authentication = fp(
  async (app: FastifyInstance, { verify }: { verify: IdentityProvider | undefined }) => {
    app.decorateRequest('caller')
    app.addHook('onRequest', async (request) => {
      const token = bearerToken(request)
      request.caller =
        verify !== undefined && JWT.test(token)
          ? { clientId: await verify(token) }
          : { tokenHash: tokenHash(token) }
    })
  },
)

function bearerToken(request: FastifyRequest): string {
  const { authorization } = request.headers
  if (authorization === undefined) throw unauthorized('missing_credentials')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || headerCount(request, 'authorization') > 1) {
    throw unauthorized('malformed_credentials')
  }
  return token
}
