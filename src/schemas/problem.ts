import { type Static, Type } from '@sinclair/typebox'
import { Component, Reference } from './fields.ts'

/** Every way in which a query parameter can be at fault (contract items 2, 3 and 5). */
export const ParameterFaultCodes = {
  unknown_parameter: { meaning: 'There is no parameter of this name; the detail lists those' },
  repeated_parameter: { meaning: 'The parameter is given more than once' },
  invalid_format: { meaning: 'Not in digits, or not a day that exists, as the parameter demands' },
  out_of_range: { meaning: 'Well formed, but below or above what the parameter allows' },
  invalid_range: { meaning: '`from` is after `to`' },
} as const satisfies Record<string, { readonly meaning: string }>

const faultRows = Object.entries(ParameterFaultCodes).map(
  ([code, { meaning }]) => `| \`${code}\` | ${meaning} |`,
)

/** One of the codes above; its description is their table. */
export const ParameterFaultCode = Type.Unsafe<keyof typeof ParameterFaultCodes>({
  type: 'string',
  enum: Object.keys(ParameterFaultCodes),
  title: 'Code',
  description: [
    'The rule that the parameter breaks, for programs; from a closed list.',
    '',
    '| Code | Meaning |',
    '|---|---|',
    ...faultRows,
  ].join('\n'),
  examples: ['out_of_range'],
})
export type ParameterFaultCode = Static<typeof ParameterFaultCode>

/** One fault of one query parameter, as a 400 lists it. */
export const ParameterFault = Component(
  'ParameterFault',
  Type.Object(
    {
      parameter: Type.String({
        title: 'Parameter',
        description: 'Name of the query parameter, as the request wrote it.',
        examples: ['limit'],
      }),
      code: ParameterFaultCode,
      detail: Type.String({
        title: 'Detail',
        description: 'The rule in words, for people.',
        examples: ['limit must be between 1 and 10000.'],
      }),
    },
    {
      additionalProperties: false,
      title: 'Parameter fault',
      description: 'One fault of one query parameter.',
    },
  ),
)
export type ParameterFault = Static<typeof ParameterFault>

interface Explanation {
  readonly status: number
  readonly title: string
  readonly meaning: string
}

/**
 * Every way in which a request can fail (section 7, contract items 16 to 19): what a program reads,
 * the status that goes with it, the fixed title of that status, and the cause.
 */
export const ProblemCodes = {
  missing_credentials: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The request has no `Authorization` header',
  },
  malformed_credentials: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The `Authorization` header is not `Bearer` and one token',
  },
  invalid_token: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The bearer token is not known, or it was revoked',
  },
  expired_token: {
    status: 401,
    title: 'Unauthorized',
    meaning: 'The bearer token was valid and has expired',
  },
  invalid_request: {
    status: 400,
    title: 'Bad Request',
    meaning: 'Query parameters are at fault; `errors` lists every one',
  },
  malformed_request: {
    status: 400,
    title: 'Bad Request',
    meaning: 'The request cannot be read, for instance because its address does not decode',
  },
  connection_not_found: {
    status: 404,
    title: 'Not Found',
    meaning: 'The calling app has no connection with this token',
  },
  route_not_found: {
    status: 404,
    title: 'Not Found',
    meaning: 'The service has nothing at this address',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method Not Allowed',
    meaning: 'The address is read-only; `Allow` names its methods',
  },
  too_many_requests: {
    status: 429,
    title: 'Too Many Requests',
    meaning: 'The app has used up its quota; `Retry-After` tells when to go on',
  },
  internal_error: {
    status: 500,
    title: 'Internal Server Error',
    meaning: 'A fault of the service; its log knows the cause by `requestId`',
  },
  service_unavailable: {
    status: 503,
    title: 'Service Unavailable',
    meaning: 'Overloaded, or without its database; `Retry-After` tells when to try again',
  },
} as const satisfies Record<string, Explanation>

const rows = Object.entries<Explanation>(ProblemCodes).map(
  ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${meaning} |`,
)

/** One of the codes above; its description is their table. */
export const ProblemCode = Type.Unsafe<keyof typeof ProblemCodes>({
  type: 'string',
  enum: Object.keys(ProblemCodes),
  title: 'Code',
  description: [
    'What went wrong, for programs; from a closed list.',
    '',
    '| Code | Status | Meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n'),
  examples: ['connection_not_found'],
})
export type ProblemCode = Static<typeof ProblemCode>

const explanations = Object.values(ProblemCodes)

/** The one body of every error (contract item 16), with the member names of RFC 9457. */
export const Problem = Component(
  'Problem',
  Type.Object(
    {
      status: Type.Unsafe<(typeof explanations)[number]['status']>({
        type: 'integer',
        enum: [...new Set(explanations.map(({ status }) => status))].sort(),
        title: 'Status',
        description: 'The HTTP status of the answer.',
        examples: [404],
      }),
      code: ProblemCode,
      title: Type.String({
        title: 'Title',
        description: 'The status in words; always the same for one status.',
        examples: ['Not Found'],
      }),
      detail: Type.String({
        title: 'Detail',
        description: 'What went wrong this time, for people. Programs read `code`.',
        examples: ['This app has no connection with that token.'],
      }),
      requestId: Type.String({
        title: 'Request',
        description: 'The `X-Request-ID` of the answer. Quote it when you report a fault.',
        examples: ['6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'],
      }),
      errors: Type.Optional(
        Type.Array(Reference(ParameterFault), {
          minItems: 1,
          title: 'Errors',
          description: 'Every fault of the query parameters; only with `invalid_request`.',
        }),
      ),
    },
    {
      additionalProperties: false,
      title: 'Problem',
      description: 'Why the request failed: one body for every error of every endpoint.',
    },
  ),
)
export type Problem = Static<typeof Problem>

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
