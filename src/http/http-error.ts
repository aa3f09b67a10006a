import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  type ParameterError,
  type Problem,
  type ProblemCode,
  ProblemCodes,
} from '../schemas/problem.ts'

export class HttpError extends Error {
  override name = 'HttpError'
  readonly code: ProblemCode
  readonly headers: Record<string, string>
  readonly errors: ParameterError[] | undefined

  constructor(
    code: ProblemCode,
    detail: string = ProblemCodes[code].detail,
    headers: Record<string, string> = {},
    errors?: ParameterError[],
  ) {
    super(detail)
    this.code = code
    this.headers = headers
    this.errors = errors
  }
}

export function serviceUnavailable(detail?: string): HttpError {
  return new HttpError('service_unavailable', detail, { 'retry-after': '1' })
}

const REALM = 'Bearer realm="investment data"'

/** Creates a 401. The challenge has an error only for a rejected token (RFC 6750, section 3.1). */
export function unauthorized(code: ProblemCode): HttpError {
  const rejected = code === 'invalid_token' || code === 'expired_token'
  const challenge = rejected ? `${REALM}, error="invalid_token"` : REALM
  return new HttpError(code, undefined, { 'www-authenticate': challenge })
}

export function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: HttpError,
): FastifyReply {
  const body = errorBody(error, request.id)
  return reply
    .code(body.status)
    .headers({ 'cache-control': 'no-store', ...error.headers })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body))
}

export function errorBody(error: HttpError, requestId: string): Problem {
  const { code, message: detail, errors } = error
  const { status, title } = ProblemCodes[code]
  return { status, code, title, detail, requestId, ...(errors ? { errors } : {}) }
}
