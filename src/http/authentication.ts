import { hash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Tenants } from '../limits/tenants.ts'
import type { Caller } from '../queries/connection.ts'
import { problem } from '../schemas/problem.ts'
import type { IdentityProvider } from './identity-provider.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined until the credentials are read. */
    caller: Caller | undefined
    /** Records the app that a read has found for the caller. */
    knowApp(appId: string): void
  }
}

// RFC 6750 and 7235: scheme in any case, one or more spaces, one token68.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

// Compact serialization of a signed token (RFC 7519). App tokens contain no dot.
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** Reads the credentials of a caller. The statement that reads its data authenticates it. */
export const authentication = fp(
  async (
    app: FastifyInstance,
    { verify, tenants }: { verify: IdentityProvider | undefined; tenants: Tenants },
  ) => {
    app.decorateRequest('caller')
    app.decorateRequest('knowApp', function knowApp(this: FastifyRequest, appId: string) {
      this.recorder.identify(appId)
      if (this.caller) tenants.knowApp(this.caller.key, appId)
    })
    app.addHook('onRequest', (request, _reply, done) => {
      const { admission, headers, ip } = request
      if (headers.authorization === undefined) throw problem('missing_credentials')
      const token = BEARER.exec(headers.authorization)?.[1]
      if (token === undefined) throw problem('malformed_credentials')
      if (verify === undefined || !JWT.test(token)) {
        request.caller = callerOfToken(token)
        admission.enter(ip, request.caller.key)
        done()
        return
      }
      admission.enter(ip)
      verify(token)
        .then((id) => {
          request.caller = { method: 'clientId', credential: id, key: `client ${id}` }
          admission.enter(ip, request.caller.key)
        })
        .then(() => done(), done)
    })
  },
)

export function callerOfToken(token: string): Caller {
  const key = hash('sha256', token, 'hex')
  return { method: 'tokenHash', credential: `\\x${key}`, key }
}
