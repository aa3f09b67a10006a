import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { DatabaseUnavailable, HostFailed } from '../postgres/errors.ts'
import { ConnectionNotFound, TokenExpired, TokenUnknown } from '../queries/caller.ts'
import type { ParameterFault, Problem } from '../schemas/problem.ts'
import { type ProblemCode, ProblemCodes } from '../schemas/problem.ts'
import { ProviderUnavailable } from './jwks.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Why the request was refused, for the log and the metrics. */
    problem: ProblemCode | undefined
    /** What was missing, where that is why. */
    lacking: 'database' | 'identity provider' | 'capacity' | undefined
  }
}

/** A request that is refused, with what the client is told. Thrown anywhere, answered here. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly code: ProblemCode
  readonly headers: Record<string, string>
  readonly errors: ParameterFault[] | undefined

  constructor(
    code: ProblemCode,
    detail: string,
    extra: { headers?: Record<string, string>; errors?: ParameterFault[] } = {},
  ) {
    super(detail)
    this.code = code
    this.headers = extra.headers ?? {}
    this.errors = extra.errors
  }
}

/** Answers every error, of every route, with the one body of contract 16. */
export const problems = fp(async (app: FastifyInstance) => {
  app.decorateRequest('problem')
  app.decorateRequest('lacking')
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = refusalOf(error)
    if (refusal.code === 'internal_error') request.log.error({ err: error }, 'request failed')
    if (refusal.code === 'service_unavailable') {
      request.lacking = lackOf(error)
      // In an outage there are many of these, so it is one line each, without a stack. What is left
      // undone because its client has gone says nothing of the service.
      const cause = error.cause instanceof Error ? error.cause.message : undefined
      const facts = { reason: error.message, cause }
      if (!reply.raw.destroyed) request.log.warn(facts, 'request could not be served')
    }
    return sendProblem(request, reply, refusal)
  })
  app.setNotFoundHandler((request, reply) =>
    sendProblem(request, reply, new Refusal('route_not_found', 'There is nothing here.')),
  )
})

export function sendProblem(
  request: FastifyRequest,
  reply: FastifyReply,
  { code, message, headers, errors }: Refusal,
): FastifyReply {
  const { status, title } = ProblemCodes[code]
  request.problem = code
  const problem: Problem = {
    status,
    code,
    title,
    detail: message,
    requestId: request.id,
    ...(errors ? { errors } : {}),
  }
  // A cache that told it to the next one who asks would not look at whose token that is.
  reply.header('cache-control', 'no-store')
  return reply
    .code(status)
    .headers(headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(problem))
}

/** The database refuses with a cause, or as a whole; without one, too much is asked of it. */
function lackOf(error: Error): FastifyRequest['lacking'] {
  if (error instanceof ProviderUnavailable) return 'identity provider'
  if (error instanceof HostFailed) return 'database'
  return error instanceof DatabaseUnavailable && error.cause ? 'database' : 'capacity'
}

function refusalOf(error: FastifyError): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof TokenUnknown) {
    return unauthorized('invalid_token', 'The bearer token is not known, or it was revoked.')
  }
  if (error instanceof TokenExpired) {
    return unauthorized('expired_token', 'The bearer token has expired.')
  }
  if (error instanceof ConnectionNotFound) {
    return new Refusal('connection_not_found', 'This app has no connection with that token.')
  }
  if (error instanceof DatabaseUnavailable || error instanceof ProviderUnavailable) {
    return unavailable()
  }
  // What Fastify refuses by itself: an address that does not decode, a body that cannot be read.
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new Refusal('malformed_request', 'The request cannot be read.')
  }
  return new Refusal('internal_error', 'The service failed. Its operators can look the request up.')
}

export function unavailable(detail = 'The service cannot answer now. Try again soon.'): Refusal {
  return new Refusal('service_unavailable', detail, { headers: { 'retry-after': '1' } })
}

const REALM = 'Bearer realm="investment data"'

/** A 401; that a token was sent and not accepted is told as RFC 6750 says. */
export function unauthorized(code: ProblemCode, detail: string): Refusal {
  const sent = code === 'invalid_token' || code === 'expired_token'
  const challenge = sent ? `${REALM}, error="invalid_token"` : REALM
  return new Refusal(code, detail, { headers: { 'www-authenticate': challenge } })
}
