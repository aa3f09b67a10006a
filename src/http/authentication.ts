import { hash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Caller } from '../context.ts'
import { problem } from '../schemas/problem.ts'
import type { IdentityProvider } from './identity-provider.ts'

// RFC 6750 and 7235: scheme in any case, one or more spaces, one token68.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

// Compact serialization of a signed token (RFC 7519). App tokens contain no dot.
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** Reads the credentials of a caller (section 5). The statement that reads its data authenticates it. */
export const authentication = fp(
  async (app: FastifyInstance, { verify }: { verify: IdentityProvider | undefined }) => {
    app.addHook('onRequest', (request, _reply, done) => {
      const { context, headers, ip } = request
      if (headers.authorization === undefined) throw problem('missing_credentials')
      const token = BEARER.exec(headers.authorization)?.[1]
      if (token === undefined) throw problem('malformed_credentials')
      if (verify === undefined || !JWT.test(token)) {
        context.enter(ip, callerOfToken(token))
        done()
        return
      }
      context.enter(ip)
      verify(token)
        .then((id) =>
          context.enter(ip, { method: 'clientId', credential: id, key: `client ${id}` }),
        )
        .then(() => done(), done)
    })
  },
)

export function callerOfToken(token: string): Caller {
  const key = hash('sha256', token, 'hex')
  return { method: 'tokenHash', credential: `\\x${key}`, key }
}
