import { type Static, Type } from '@sinclair/typebox'
import { ClosedList, Reference } from './fields.ts'

/** Reasons to reject a query parameter (contract 2, 3 and 5). */
const ParameterErrorCode = ClosedList(
  {
    unknown_parameter: 'No parameter has this name; `detail` lists the valid names',
    repeated_parameter: 'The request has the parameter more than once',
    invalid_format: 'The value is not in digits, or not an existing day, as the parameter requires',
    out_of_range: 'The value is below or above the limits of the parameter',
    invalid_range: '`from` is after `to`',
    invalid_cursor: 'The value is not a cursor of this list and connection',
    excluded_parameter: 'The parameter cannot be used together with `since`, or in an export',
  },
  {
    description: 'Rule that the parameter breaks, for programs; from a closed list.',
    meaning: (meaning) => meaning,
    examples: ['out_of_range'],
  },
)
export type ParameterErrorCode = Static<typeof ParameterErrorCode>

/** Errors that a 400 lists. A request of 15 KB may have 3,700, and would get a response of 473 KB. */
export const MAX_PARAMETER_ERRORS = 20

/** One error of one query parameter in a 400. Generated clients know it as `ParameterFault`. */
export const ParameterError = Type.Object(
  {
    parameter: Type.String({
      description: 'Name of the query parameter, as in the request.',
      examples: ['limit'],
    }),
    code: ParameterErrorCode,
    detail: Type.String({
      description: 'The rule in words, for people.',
      examples: ['limit must be a whole number from 1 to 10000, in digits.'],
    }),
  },
  {
    $id: 'ParameterFault',
    additionalProperties: false,
    description: 'One error of one query parameter.',
  },
)
export type ParameterError = Static<typeof ParameterError>

interface ProblemType {
  status: number
  title: string
  meaning: string
  /** Advice to developers of clients, in Markdown. */
  action: string
  /** Text of `detail`, unless the error has a more exact one. */
  detail: string
  /** Headers of every response with this error. */
  headers?: Record<string, string>
}

const REALM = 'Bearer realm="investment data"'
/** The challenge has an error only for a rejected token (RFC 6750, section 3.1). */
const challenge = (error = '') => ({ headers: { 'www-authenticate': `${REALM}${error}` } })
const REJECTED = challenge(', error="invalid_token"')

const UNAUTHORIZED = { status: 401, title: 'Unauthorized' } as const
const BAD_REQUEST = { status: 400, title: 'Bad Request' } as const
const NOT_FOUND = { status: 404, title: 'Not Found' } as const

/** Every error of the API by its `code` (section 7, contract 16 to 19). */
export const ProblemCodes = {
  missing_credentials: {
    ...UNAUTHORIZED,
    ...challenge(),
    meaning: 'The request has no `Authorization` header',
    action: 'Send the app token. A retry without it does not help.',
    detail: 'Send the header "Authorization: Bearer <token>".',
  },
  malformed_credentials: {
    ...UNAUTHORIZED,
    ...challenge(),
    meaning: 'The `Authorization` header is not `Bearer` and one token',
    action: 'Write `Bearer`, one space, and the app token.',
    detail: 'Authorization must be "Bearer" and one token.',
  },
  invalid_token: {
    ...UNAUTHORIZED,
    ...REJECTED,
    meaning: 'The bearer token is unknown or revoked',
    action: 'Get a valid app token. A retry does not help.',
    detail: 'The bearer token is unknown or revoked.',
  },
  expired_token: {
    ...UNAUTHORIZED,
    ...REJECTED,
    meaning: 'The bearer token was valid and has expired',
    action: 'Get a new app token. A retry does not help.',
    detail: 'The bearer token has expired.',
  },
  invalid_request: {
    ...BAD_REQUEST,
    meaning: 'Query parameters are not valid; `errors` lists each error',
    action: 'Correct the parameters in `errors`.',
    detail: 'Some query parameters are invalid: `errors` lists each one.',
  },
  malformed_request: {
    ...BAD_REQUEST,
    meaning: 'The service cannot read the request, for example because its URL does not decode',
    action: 'Correct the request. It has no body, and its URL decodes as UTF-8.',
    detail: 'The request cannot be read.',
  },
  response_too_large: {
    ...BAD_REQUEST,
    meaning:
      'The response exceeds the memory that the service has for it, also without other requests',
    action: 'Request fewer rows with a smaller `limit`. A retry of the same request does not help.',
    detail: 'The response exceeds the memory of the service. Request it with a smaller `limit`.',
  },
  connection_not_found: {
    ...NOT_FOUND,
    meaning: 'The calling app has no connection with this token',
    action: 'Check the connection token, and that it belongs to the calling app.',
    detail: 'This app has no connection with this token.',
  },
  route_not_found: {
    ...NOT_FOUND,
    meaning: 'The service has no such path',
    action: 'Check the path: those of the API begin with `/api/v1/queries/connections/`.',
    detail: 'This path does not exist.',
  },
  cursor_expired: {
    status: 410,
    title: 'Gone',
    meaning: 'The changes since this cursor are not known',
    action: 'Delete the copy and its cursor, and start again with `since=start`.',
    detail: 'The changes since this cursor are not known. Start again with since=start.',
  },
  data_changed: {
    status: 412,
    title: 'Precondition Failed',
    meaning: 'The connection no longer has the data version in `version`',
    action: 'Read all pages again, from the first one.',
    detail: 'The data has changed since this version. Start again with page 0.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method Not Allowed',
    meaning: 'The path is read-only; `Allow` lists its methods',
    action: 'Use `GET` or `HEAD`.',
    detail: 'Only GET and HEAD are supported.',
    headers: { allow: 'GET, HEAD' },
  },
  too_many_requests: {
    status: 429,
    title: 'Too Many Requests',
    meaning: 'The app has used up its quota',
    action: 'Retry after `Retry-After` seconds.',
    detail: 'An app may send 60 requests a minute.',
  },
  internal_error: {
    status: 500,
    title: 'Internal Server Error',
    meaning: 'The service failed; its log has the cause under `requestId`',
    action: 'Retry later, and double the delay each time. Report the error if it stays.',
    detail: 'The service failed. Report the requestId to its operator.',
  },
  service_unavailable: {
    status: 503,
    title: 'Service Unavailable',
    meaning: 'The service is overloaded or has no database',
    action: 'Retry after `Retry-After` seconds.',
    detail: 'The service is unavailable. Try again soon.',
    headers: { 'retry-after': '1' },
  },
} as const satisfies Record<string, ProblemType>
export type ProblemCode = keyof typeof ProblemCodes

interface ProblemOptions extends ErrorOptions {
  detail?: string | undefined
  headers?: Record<string, string>
  errors?: ParameterError[]
}

/** An error with a response of its own. Any layer may throw it; the error handler sends it. */
export class ProblemError extends Error {
  override name = 'ProblemError'
  readonly code: ProblemCode
  readonly headers: Record<string, string>
  readonly errors: ParameterError[] | undefined

  constructor(code: ProblemCode, options: ProblemOptions) {
    const { detail, headers, errors, ...rest } = options
    const type: ProblemType = ProblemCodes[code]
    super(detail ?? type.detail, rest)
    this.code = code
    this.headers = { ...type.headers, ...headers }
    this.errors = errors
  }
}

/** Creates an error of the table above: `throw problem('cursor_expired')`. */
export const problem = (code: ProblemCode, options: ProblemOptions = {}): ProblemError =>
  new ProblemError(code, options)

const problemTypes = Object.values(ProblemCodes)
const REQUEST_ID = '6a0f2d94-71c3-4be8-9f25-d3b8e4c7a106'

/** Body of every error (contract 16), with the member names of RFC 9457. */
export const Problem = Type.Object(
  {
    status: Type.Unsafe<(typeof problemTypes)[number]['status']>({
      type: 'integer',
      format: 'int32',
      minimum: 400,
      maximum: 599,
      enum: [...new Set(problemTypes.map(({ status }) => status))].sort(),
      description: 'HTTP status of the response.',
      examples: [404],
    }),
    code: ClosedList(ProblemCodes, {
      description: 'Type of the error, for programs; from a closed list.',
      columns: { Status: ({ status }) => String(status) },
      meaning: ({ meaning }) => meaning,
      examples: ['connection_not_found'],
    }),
    title: Type.String({
      description: 'The status in words; the same for every error of one status.',
      examples: ['Not Found'],
    }),
    detail: Type.String({
      description: 'The cause of this error, for people. Programs read `code`.',
      examples: ['This app has no connection with this token.'],
    }),
    requestId: Type.String({
      description: '`X-Request-ID` of the response. Quote it when you report an error.',
      examples: [REQUEST_ID],
    }),
    errors: Type.Optional(
      Type.Array(Reference(ParameterError), {
        minItems: 1,
        maxItems: MAX_PARAMETER_ERRORS,
        description:
          `Errors of the query parameters, ${MAX_PARAMETER_ERRORS} at most; only with ` +
          '`invalid_request`. With more errors, `detail` has their number.',
      }),
    ),
  },
  {
    $id: 'Problem',
    additionalProperties: false,
    description: 'Reason of the error: one body for every error of every endpoint.',
  },
)
export type Problem = Static<typeof Problem>

export const INVALID_QUERY = 'form=2025-01-01&to=2025-02-30'

const errors: ParameterError[] = [
  {
    parameter: 'form',
    code: 'unknown_parameter',
    detail: 'There is no such parameter. The parameters are from, to, limit, page, since, version.',
  },
  {
    parameter: 'to',
    code: 'invalid_format',
    detail: 'to must be a day that exists, as YYYY-MM-DD.',
  },
]

/** Examples of one status for OpenAPI, without `route_not_found`, which no operation returns. */
export function problemExamples(status: number) {
  const codes = Object.keys(ProblemCodes) as ProblemCode[]
  const shown = codes.filter(
    (code) => ProblemCodes[code].status === status && code !== 'route_not_found',
  )
  return Object.fromEntries(
    shown.map((code) => {
      const { title, detail } = ProblemCodes[code]
      const problem = { status, code, title, detail, requestId: REQUEST_ID }
      const value = code === 'invalid_request' ? { ...problem, errors } : problem
      return [code, { summary: code, value }]
    }),
  )
}
