import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { RequestContext } from '../limits/context.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { ServerFailed } from '../postgres/failures.ts'
import { ProblemCodes, ProblemError, problem } from '../schemas/problem.ts'
import { sendError } from './http-error.ts'

/** The identity provider's keys cannot be fetched or used. A later request may succeed. */
export class IdentityProviderUnavailable extends Error {
  override name = 'IdentityProviderUnavailable'
}

/** Sends every error of every route with the same body (contract 16). */
export const errorHandler = fp(async (app: FastifyInstance) => {
  app.setErrorHandler(async (error: FastifyError, request, reply) => {
    const { context } = request
    const found = toProblem(error)
    const { code } = found
    context.errorCode = code
    if (code === 'internal_error') request.log.error({ err: error }, 'request failed')
    // A failed health check is not a rejected request. It has no line in the log either.
    if (code === 'service_unavailable' && request.routeOptions.logLevel !== 'silent')
      context.unavailableReason = unavailableReason(error)
    const isRepeatable = canRepeat(found, request) && !app.state.draining
    const turn = isRepeatable ? context.waitToReject(request.ip) : undefined
    // An outage causes many of these lines, so they have no stack. A disconnect is no failure.
    if (code === 'service_unavailable' && !context.repeatedBy && !reply.raw.destroyed) {
      const cause = error.cause instanceof Error ? error.cause.message : undefined
      request.log.warn({ reason: error.message, cause }, 'request could not be served')
    }
    if ((await turn) === false) {
      request.raw.destroy()
      return reply.hijack()
    }
    return sendError(request, reply, found)
  })
  app.setNotFoundHandler(() => {
    throw problem('route_not_found')
  })
})

/** True for a response that the client causes, and that costs less than the request: 401, 429, and 503 by overload. */
function canRepeat({ code }: ProblemError, { context }: FastifyRequest): boolean {
  const { status } = ProblemCodes[code]
  return status === 401 || status === 429 || context.unavailableReason === 'overload'
}

/** A Unavailable without a cause comes from a limit of this service, not from the database. */
function unavailableReason(error: Error): RequestContext['unavailableReason'] {
  if (error instanceof IdentityProviderUnavailable) return 'identity_provider'
  if (error instanceof ServerFailed) return 'database'
  return error instanceof Unavailable && error.cause ? 'database' : 'overload'
}

function toProblem(error: FastifyError): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof Unavailable || error instanceof IdentityProviderUnavailable) {
    return problem('service_unavailable')
  }
  // Errors of Fastify itself, such as a path that cannot be decoded.
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return problem('malformed_request')
  }
  return problem('internal_error')
}
