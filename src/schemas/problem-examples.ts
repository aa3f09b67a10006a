import type { ParameterFault } from './parameter-fault.ts'
import type { Problem } from './problem.ts'
import { type ProblemCode, ProblemCodes } from './problem-code.ts'

const details: Record<ProblemCode, string> = {
  missing_credentials: 'Send the header "Authorization: Bearer <token>".',
  malformed_credentials: 'Authorization must be "Bearer" and one token.',
  invalid_token: 'The bearer token is not known, or it was revoked.',
  expired_token: 'The bearer token has expired.',
  malformed_request: 'The request cannot be read.',
  invalid_request: 'Query parameters cannot be used; `errors` lists each one.',
  connection_not_found: 'This app has no connection with that token.',
  route_not_found: 'There is nothing here.',
  method_not_allowed: 'Only GET and HEAD are answered here.',
  too_many_requests: 'An app may send 60 requests a minute.',
  internal_error: 'The service failed. Its operators can look the request up.',
  service_unavailable: 'The service cannot answer now. Try again soon.',
}

const errors: ParameterFault[] = [
  {
    parameter: 'form',
    code: 'unknown_parameter',
    detail: 'There is no such parameter. The parameters are from, to, limit, page.',
  },
  {
    parameter: 'to',
    code: 'invalid_format',
    detail: 'to must be a day that exists, as YYYY-MM-DD.',
  },
]

/** The request of the example of `invalid_request`. */
export const INVALID_QUERY = 'form=2025-01-01&to=2025-02-30'

/** An error as the service sends it; a test holds that it does, but for the request id. */
function problemExample(code: ProblemCode): Problem {
  const { status, title } = ProblemCodes[code]
  return {
    status,
    code,
    title,
    detail: details[code],
    requestId: '6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106',
    ...(code === 'invalid_request' ? { errors } : {}),
  }
}

/** The examples of a status on an address that exists, as OpenAPI lists them. */
export function problemExamples(status: number) {
  const codes = Object.keys(ProblemCodes) as ProblemCode[]
  const shown = codes.filter(
    (code) => ProblemCodes[code].status === status && code !== 'route_not_found',
  )
  return Object.fromEntries(
    shown.map((code) => [code, { summary: code, value: problemExample(code) }]),
  )
}
