import { STATUS_CODES } from 'node:http'
import { type Static, Type } from '@sinclair/typebox'
import { ClosedList, Reference } from './fields.ts'

/** Reasons to reject a query parameter. */
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
  String,
  'Rule that the parameter breaks, for programs. A later release may add values.',
)
export type ParameterErrorCode = Static<typeof ParameterErrorCode>

/** Errors that a 400 lists. A request of 15 KB may have 3,700, and would get a response of 473 KB. */
export const MAX_PARAMETER_ERRORS = 20

/** One error of one query parameter in a 400. Generated clients know it as `ParameterFault`. */
export const ParameterError = Type.Object(
  {
    parameter: Type.String({ description: 'Name of the query parameter, as in the request.' }),
    code: ParameterErrorCode,
    detail: Type.String({ description: 'The rule in words, for people.' }),
  },
  {
    $id: 'ParameterFault',
    description: 'One error of one query parameter.',
  },
)
export type ParameterError = Static<typeof ParameterError>

interface ProblemType {
  status: number
  /** Cause of the error, for people. An error may have a more exact one. */
  detail: string
  /** What leads to the error, for the page /docs, in Markdown. */
  cause: string
  /** Advice to developers of clients, in Markdown. */
  action: string
  /** Headers of every response with this error. */
  headers?: Record<string, string>
}

const REALM = 'Bearer realm="investment data"'
/** The challenge has an error only for a rejected token (RFC 6750, section 3.1). */
const CHALLENGE = { headers: { 'www-authenticate': REALM } }
const REJECTED = { headers: { 'www-authenticate': `${REALM}, error="invalid_token"` } }

/** Every error of the API by its `code`. */
export const ProblemCodes = {
  missing_credentials: {
    status: 401,
    detail: 'Send the header "Authorization: Bearer <token>".',
    cause: 'The request has no header `Authorization`.',
    action: 'Send `Authorization: Bearer` and the app token. A retry without it does not help.',
    ...CHALLENGE,
  },
  malformed_credentials: {
    status: 401,
    detail: 'Authorization must be "Bearer" and one token.',
    cause:
      '`Authorization` is not `Bearer` and one token. Often the variable with the token is empty, or the token has quotes.',
    action: 'Write `Bearer`, one space, and the app token.',
    ...CHALLENGE,
  },
  invalid_token: {
    status: 401,
    detail: 'The bearer token is unknown or revoked.',
    cause: 'The app token is unknown or revoked, or it is the connection token.',
    action: 'Get a valid app token. A retry does not help.',
    ...REJECTED,
  },
  expired_token: {
    status: 401,
    detail: 'The bearer token has expired.',
    cause: 'The time has passed until which the app token was valid.',
    action: 'Get a new app token. A retry does not help.',
    ...REJECTED,
  },
  invalid_request: {
    status: 400,
    detail: 'Some query parameters are invalid: `errors` lists each one.',
    cause: 'A query parameter is unknown or repeated, has a wrong value, or excludes another one.',
    action:
      'Correct the parameters in `errors`. The [codes](#ParameterFault) there say which rule each of them breaks.',
  },
  malformed_request: {
    status: 400,
    detail: 'The request cannot be read.',
    cause:
      'The request has a body, not exactly one `Host`, or a URL that does not decode as UTF-8 or is too long. Or it continues an export by `Range`.',
    action: 'Correct the request. Request an export again from its beginning.',
  },
  response_too_large: {
    status: 400,
    detail: 'The response exceeds the memory of the service. Request it with a smaller `limit`.',
    cause: 'The rows of one page need more memory than the service has for one app.',
    action: 'Request it with a smaller `limit`. A retry of the same request does not help.',
  },
  connection_not_found: {
    status: 404,
    detail: 'This app has no connection with this token.',
    cause:
      'The connection token is unknown, is that of another app, or its connection was deleted.',
    action:
      'Check the connection token, and that it belongs to the calling app. If it worked before, delete your copy.',
  },
  route_not_found: {
    status: 404,
    detail: 'This path does not exist.',
    cause: 'The path is not that of an operation.',
    action: 'Check the path: those of the API begin with `/api/v1/queries/connections/`.',
  },
  cursor_expired: {
    status: 410,
    detail: 'The changes since this cursor are not known. Start again with since=start.',
    cause:
      'The service no longer knows the changes since this cursor: it is too old, or the database was restored.',
    action: 'Delete the copy and its cursor. Start again with `since=start`.',
  },
  data_changed: {
    status: 412,
    detail: 'The data has changed since this version. Start again with page 0.',
    cause: 'Data of the connection has changed since the first page.',
    action: 'Read all pages again, without `version` for the first one.',
  },
  method_not_allowed: {
    status: 405,
    detail: 'Only GET and HEAD are supported.',
    cause: 'The method is neither GET nor HEAD.',
    action: 'Send a GET. The API changes no data.',
    headers: { allow: 'GET, HEAD' },
  },
  too_many_requests: {
    status: 429,
    detail: 'The app has used up its quota.',
    cause: 'The app has used up its quota, over all its tokens.',
    action: 'Retry after the seconds in `Retry-After`.',
  },
  internal_error: {
    status: 500,
    detail: 'The service failed. Report the requestId to its operator.',
    cause: 'The service failed.',
    action:
      'Retry later, and double the delay each time. If the error stays, report its `requestId`.',
  },
  service_unavailable: {
    status: 503,
    detail: 'The service is unavailable. Retry after the seconds in Retry-After.',
    cause: 'The service is overloaded, stops, or has no database.',
    action: 'Retry after the seconds in `Retry-After`.',
    headers: { 'retry-after': '1' },
  },
} as const satisfies Record<string, ProblemType>
export type ProblemCode = keyof typeof ProblemCodes

/** The status in words. */
export const titleOf = (code: ProblemCode): string =>
  STATUS_CODES[ProblemCodes[code].status] as string

/** Cause of `route_not_found`, with the paths that exist. */
export const routeNotFoundDetail = (paths: readonly string[]): string =>
  `${ProblemCodes.route_not_found.detail} Those of the API are ${paths.join(', ')}.`

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

/** Body of every error, with the member names of RFC 9457. */
export const Problem = Type.Object(
  {
    status: Type.Unsafe<(typeof problemTypes)[number]['status']>({
      type: 'integer',
      format: 'int32',
      minimum: 400,
      maximum: 599,
      enum: [...new Set(problemTypes.map(({ status }) => status))].sort(),
      description: 'HTTP status of the response.',
    }),
    code: ClosedList(
      ProblemCodes,
      ({ detail }) => detail,
      'Type of the error, for programs. A later release may add values.',
    ),
    title: Type.String({ description: 'The status in words.' }),
    detail: Type.String({ description: 'The cause, for people. Programs read `code`.' }),
    requestId: Type.String({ description: '`X-Request-ID` of the response. Quote it in reports.' }),
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
    description: 'Reason of the error: one body for every error of every endpoint.',
  },
)
export type Problem = Static<typeof Problem>
