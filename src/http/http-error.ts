import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Problem, ProblemCodes, type ProblemError, titleOf } from '../schemas/problem.ts'

export function sendError(
  request: FastifyRequest,
  reply: FastifyReply,
  error: ProblemError,
): FastifyReply {
  const body = errorBody(error, request.id)
  return reply
    .code(body.status)
    .headers({ 'cache-control': 'no-store', ...error.headers })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body))
}

export function errorBody(error: ProblemError, requestId: string): Problem {
  const { code, message: detail, errors } = error
  const { status } = ProblemCodes[code]
  return { status, code, title: titleOf(code), detail, requestId, ...(errors ? { errors } : {}) }
}
