import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { errorMessage } from '../error-message.ts'
import type { Limits } from '../limits/limits.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { type Problem, ProblemCodes, ProblemError, problem, titleOf } from '../schemas/problem.ts'
import { delayed } from './delays.ts'
import type { ServiceState } from './request-context.ts'

interface ErrorOptions {
  limits: Limits
  state: ServiceState
  /** True if the service has the page /docs, which each error links to. */
  hasDocs: boolean
}

/** Sends an error. */
export type ErrorReplier = (
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<FastifyReply>

/** Sends every error of every route with the same body. schemas/problem.ts has the table of errors. */
export function errorReplier({ limits, state, hasDocs }: ErrorOptions): ErrorReplier {
  return async (error, request, reply) => {
    const { admission, caller, ip, recorder } = request
    const found = toProblem(error)
    const { status } = ProblemCodes[found.code]
    recorder.fail(found.code)
    if (status === 401 && caller) limits.tenants.forgetApp(caller.key)
    if (status === 500) request.log.error({ err: error }, 'request failed')
    // A failed health check is not a rejected request. It has no line in the log either.
    if (status === 503 && !request.routeOptions.config.isProbe)
      recorder.failUnavailable(error instanceof Unavailable ? error.reason : 'overload')
    const { facts } = recorder
    // The client causes these responses, and they cost less than its request.
    const isAnonymous = status < 500 && caller === undefined
    const isCheap = status === 401 || status === 429 || facts.unavailableReason === 'overload'
    const waits = (isAnonymous || isCheap) && !state.draining
    const place = waits ? admission.placeOfRejection(ip, facts.receivedAt) : undefined
    // An outage causes many of these lines, so they have no stack. A disconnect is no failure.
    if (status === 503 && !place?.repeatedBy && !reply.raw.destroyed) {
      const cause = error.cause instanceof Error ? errorMessage(error.cause) : undefined
      request.log.warn({ reason: error.message, cause }, 'request could not be served')
    }
    if (place && !(await delayed(request, reply, place))) return reply
    return sendError(request, reply, found, hasDocs)
  }
}

function toProblem(error: FastifyError): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof Unavailable) return problem('service_unavailable')
  // Errors of Fastify itself, such as a path that cannot be decoded.
  const { statusCode = 500 } = error
  return problem(statusCode >= 400 && statusCode < 500 ? 'malformed_request' : 'internal_error')
}

export function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: ProblemError,
  hasDocs = false,
): FastifyReply {
  const body = errorBody(error, request.id)
  const help = hasDocs ? helpLink(request.url, error) : undefined
  if (help !== undefined) reply.header('link', help)
  return reply
    .code(body.status)
    .headers({ 'cache-control': 'no-store', ...error.headers })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body))
}

/** Most segments of a path whose errors have a link: that of a longer one would be long, too. */
const MAX_SEGMENTS = 20

/**
 * Links to the section of the error on the page /docs. The link is relative: a proxy may add a path, and an absolute one
 * would repeat the connection token.
 */
function helpLink(url: string, { code }: ProblemError): string | undefined {
  const [path = ''] = url.split('?', 1)
  const segments = path.split('/').length - 1
  // The target of a request may also be `*` or a whole URL.
  if (!path.startsWith('/') || segments > MAX_SEGMENTS) return undefined
  return `<${'../'.repeat(segments - 1)}docs#${code}>; rel="help"`
}

export function errorBody(error: ProblemError, requestId: string): Problem {
  const { code, message: detail, errors } = error
  const { status } = ProblemCodes[code]
  return { status, code, title: titleOf(code), detail, requestId, ...(errors ? { errors } : {}) }
}
