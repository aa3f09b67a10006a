import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { FifoMap, LruMap } from 'toad-cache'
import type { Config } from '../config.ts'
import { mayTake, Tenant } from '../limits/concurrency.ts'
import type { Database } from '../postgres/database.ts'
import { tokenHash } from '../postgres/tokens.ts'
import {
  type Caller,
  callerKey,
  confirmCaller,
  ExpiredToken,
  InvalidToken,
} from '../queries/caller.ts'
import { serviceUnavailable, unauthorized } from './errors.ts'
import { headerCount } from './headers.ts'
import type { IdentityProvider } from './identity-provider.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Credentials of the request. Only the database shows which app they belong to, if any. */
    caller: Caller
    /** App of the caller at its last confirmation. It only selects queues and shares. */
    tenant: Tenant
  }
  interface FastifyInstance {
    /**
     * Confirms the caller of a request with a lookup that waits in the queue of unconfirmed callers.
     * Requests of one caller that arrive before the lookup starts share it.
     * @throws InvalidToken or ExpiredToken
     */
    confirm(reply: FastifyReply): Promise<Tenant>
    /** Remembers the app that the database found for a caller. */
    remember(caller: Caller, appId: string): Tenant
  }
}

interface AuthenticationOptions {
  db: Database
  config: Pick<Config, 'MAX_REQUESTS'>
  verify: IdentityProvider | undefined
}

// RFC 6750 and 7235: scheme in any case, one or more spaces, one token68.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

// Compact serialization of a signed token (RFC 7519). App tokens contain no dot.
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

/** Maximum of callers that an instance remembers, and of apps and of client addresses. It drops the oldest. */
const MAX_CALLERS = 50_000
const MAX_TENANTS = 10_000

/**
 * Reads the Authorization header (section 5). With an identity provider, verifies its tokens. The
 * database looks up all other tokens as app tokens. A caller that it has not confirmed yet waits for a
 * lookup first: a flood of unknown tokens then takes few places from the known apps.
 */
export const authentication = fp(async (app: FastifyInstance, options: AuthenticationOptions) => {
  const { db, config, verify } = options
  const callers = new FifoMap<Tenant>(MAX_CALLERS)
  const apps = new LruMap<Tenant>(MAX_TENANTS)
  const addresses = new LruMap<Tenant>(MAX_TENANTS)
  /** Requests in flight of all tenants. */
  let requests = 0
  const lookUp = shared((caller: Caller, since: number, tenant: Tenant) =>
    confirmCaller(db, caller, { since, tenant }),
  )

  app.decorateRequest('caller')
  app.decorateRequest('tenant')
  app.decorate('confirm', async (reply) => {
    const { caller, ip } = reply.request
    const since = performance.now() - reply.elapsedTime
    return app.remember(caller, await lookUp(callerKey(caller), caller, since, addressTenant(ip)))
  })
  app.decorate('remember', (caller, appId) => {
    const tenant = apps.get(appId) ?? new Tenant(appId)
    apps.set(appId, tenant)
    callers.set(callerKey(caller), tenant)
    return tenant
  })
  app.addHook('onRequest', async (request, reply) => {
    const token = bearerToken(request)
    request.caller =
      verify !== undefined && JWT.test(token)
        ? { clientId: await verify(token) }
        : { tokenHash: tokenHash(token) }
    const known = callers.get(callerKey(request.caller))
    takeShare(known ?? addressTenant(request.ip), reply)
    request.tenant = known ?? (await app.confirm(reply))
  })
  app.addHook('onError', async ({ caller }, _reply, error) => {
    const rejected = error instanceof InvalidToken || error instanceof ExpiredToken
    if (rejected && caller) callers.delete(callerKey(caller))
  })

  function addressTenant(ip: string): Tenant {
    const tenant = addresses.get(ip) ?? new Tenant(undefined)
    addresses.set(ip, tenant)
    return tenant
  }

  function count(tenant: Tenant, step: 1 | -1): void {
    requests += step
    tenant.requests += step
  }

  /** @throws HttpError 503 if the tenant has its share of the requests in flight */
  function takeShare(tenant: Tenant, { request, raw }: FastifyReply): void {
    if (!mayTake(1, tenant.requests, config.MAX_REQUESTS - requests)) {
      throw serviceUnavailable('Too many requests are in flight. Try again soon.')
    }
    if (raw.destroyed) return
    count(tenant, 1)
    request.endListeners.push(() => count(tenant, -1))
  }
})

/** Makes calls with the same key share the next run of a function. Runs with one key do not overlap. */
function shared<Input extends unknown[], Result>(run: (...input: Input) => Promise<Result>) {
  const next = new Map<string, Promise<Result>>()
  const current = new Map<string, Promise<Result>>()
  const start = async (key: string, input: Input) => {
    await current.get(key)?.catch(() => {})
    next.delete(key)
    const result = run(...input)
    current.set(key, result)
    // The next run starts after this one has ended, so it cannot be current yet.
    return result.finally(() => current.delete(key))
  }
  return (key: string, ...input: Input): Promise<Result> => {
    const result = next.get(key) ?? start(key, input)
    next.set(key, result)
    return result
  }
}

function bearerToken(request: FastifyRequest): string {
  const { authorization } = request.headers
  if (authorization === undefined) throw unauthorized('missing_credentials')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || headerCount(request, 'authorization') > 1) {
    throw unauthorized('malformed_credentials')
  }
  return token
}
