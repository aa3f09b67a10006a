import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { FifoMap, LruMap } from 'toad-cache'
import { FairBatches } from '../limits/batches.ts'
import { type Limits, ReadContext } from '../limits/context.ts'
import { Tenant } from '../limits/requests.ts'
import type { Database } from '../postgres/database.ts'
import { type Caller, callerOfClient, callerOfToken, confirmCallers } from '../queries/caller.ts'
import { ProblemCodes, ProblemError, problem } from '../schemas/problem.ts'
import { headerCount } from './headers.ts'
import type { IdentityProvider } from './identity-provider.ts'
import { type Confirmation, tooManyRequests } from './request-context.ts'

// RFC 6750 and 7235: scheme in any case, one or more spaces, one token68.
const BEARER = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i

// Compact serialization of a signed token (RFC 7519). App tokens contain no dot.
const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/

const OVERLOADED = 'The service is overloaded. Try again soon.'

/** Maximum of callers that an instance remembers, and of apps. It drops the oldest. */
const MAX_CALLERS = 50_000
const MAX_APPS = 10_000
/** Time for which a confirmation is enough for a response without data (400 and 429), in ms. */
const CONFIRMED_MS = 2_000

/**
 * Authenticates callers (section 5). The database looks up app tokens and the client ids that the identity
 * provider has signed. It confirms an unknown caller before its first read: all that wait in one statement,
 * so a flood of unknown tokens uses one place. The statement that reads data confirms a known caller again.
 */
export class Authentication {
  readonly #verify: IdentityProvider | undefined
  readonly #confirmations = new FifoMap<Confirmation>(MAX_CALLERS)
  readonly #apps = new LruMap<Tenant>(MAX_APPS)
  readonly #batches: FairBatches<Caller, Map<string, string | ProblemError>>

  /** @param verify undefined without an identity provider */
  constructor(db: Database, limits: Limits, verify: IdentityProvider | undefined) {
    this.#verify = verify
    const tenant = new Tenant()
    this.#batches = new FairBatches((callers) =>
      confirmCallers(db, callers, new ReadContext(limits, tenant)),
    )
  }

  readonly plugin = fp(async (app: FastifyInstance) => {
    app.addHook('onRequest', (request, _reply, done) => {
      const authenticating = this.#authenticate(request)
      if (authenticating === undefined) done()
      else authenticating.then(() => done(), done)
    })
    app.addHook('onError', async ({ context: { caller } }, _reply, error) => {
      const rejected = error instanceof ProblemError && ProblemCodes[error.code].status === 401
      if (rejected && caller) this.#confirmations.delete(caller.key)
    })
  })

  /**
   * Confirms the caller again, unless the database confirmed it in the last CONFIRMED_MS. A response without
   * data needs it: no statement authorizes that response.
   * @throws ProblemError 401
   */
  async confirmRecent(request: FastifyRequest): Promise<void> {
    const { context } = request
    const { confirmedAt = Number.NEGATIVE_INFINITY, tenant } = context.confirmation ?? {}
    if (performance.now() - confirmedAt > CONFIRMED_MS) await this.#confirm(request)
    else context.appId = tenant?.appId
  }

  /** @returns undefined for a known app token: no other work is needed before the read */
  #authenticate(request: FastifyRequest): Promise<void> | undefined {
    const { context } = request
    const { requests } = context.limits
    if (requests.delayed) throw problem('service_unavailable', { detail: OVERLOADED })
    if (requests.full) throw tooManyRequests()
    const token = bearerToken(request)
    if (this.#verify === undefined || !JWT.test(token)) {
      return this.#enter(request, callerOfToken(token))
    }
    context.enter(context.limits.tenantOf(request.ip))
    return this.#verify(token).then((id) => this.#enter(request, callerOfClient(id)))
  }

  #enter(request: FastifyRequest, caller: Caller): Promise<void> | undefined {
    const { context } = request
    context.caller = caller
    const known = this.#confirmations.get(caller.key)
    if (known === undefined || known.confirmedAt === Number.NEGATIVE_INFINITY) {
      context.enter(context.limits.tenantOf(request.ip))
      return this.#confirm(request)
    }
    context.confirmation = known
    context.enter(known.tenant)
    return undefined
  }

  async #confirm({ context, ip }: FastifyRequest): Promise<void> {
    const caller = context.caller as Caller
    const confirmedAt = performance.now()
    const apps = await this.#batches.add(context.limits.tenantOf(ip), caller.key, caller)
    const appId = apps.get(caller.key) ?? problem('invalid_token')
    if (typeof appId !== 'string') throw appId
    const tenant = this.#apps.get(appId) ?? new Tenant(appId)
    this.#apps.set(appId, tenant)
    context.confirmation = { tenant, confirmedAt }
    context.appId = appId
    this.#confirmations.set(caller.key, context.confirmation)
    context.enter(tenant)
  }
}

function bearerToken(request: FastifyRequest): string {
  const { authorization } = request.headers
  if (authorization === undefined) throw problem('missing_credentials')
  const token = BEARER.exec(authorization)?.[1]
  if (token === undefined || headerCount(request, 'authorization') > 1) {
    throw problem('malformed_credentials')
  }
  return token
}
