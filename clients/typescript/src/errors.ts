/** Codes of the errors of the service. Later versions of the service may add codes. */
export type ProblemCode =
  | 'missing_credentials'
  | 'malformed_credentials'
  | 'invalid_token'
  | 'expired_token'
  | 'invalid_request'
  | 'malformed_request'
  | 'connection_not_found'
  | 'route_not_found'
  | 'cursor_expired'
  | 'data_changed'
  | 'method_not_allowed'
  | 'too_many_requests'
  | 'internal_error'
  | 'service_unavailable'

/** Error of one query parameter in a 400. */
export interface ParameterFault {
  parameter: string
  code: string
  detail: string
}

/** Body of an error response. */
export interface Problem {
  status: number
  code: ProblemCode
  title: string
  detail: string
  requestId: string
  errors?: ParameterFault[]
}

/** Error response of the service. The message has no token and no address. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError'
  readonly status: number
  readonly code: ProblemCode
  readonly detail: string
  /** Identifier of the request. Quote it when you report an error. */
  readonly requestId: string
  /** Invalid parameters of a 400; otherwise empty. */
  readonly errors: readonly ParameterFault[]

  constructor({ status, code, detail, requestId, errors = [] }: Problem) {
    super(`${status} ${code}: ${detail} (request ${requestId})`)
    this.status = status
    this.code = code
    this.detail = detail
    this.requestId = requestId
    this.errors = errors
  }
}

/**
 * No response of the service arrived, or one that the client cannot use. The message has no token and
 * no address.
 */
export class TransportError extends Error {
  override readonly name = 'TransportError'
  /**
   * `timeout`, `incomplete_body`, `unexpected_response`, `decimals_not_text`, or a code of the network
   * such as `ECONNRESET`.
   */
  readonly code: string
  /** Status of an unexpected response. */
  readonly status: number | undefined

  constructor(code: string, message: string, status?: number) {
    super(message)
    this.code = code
    this.status = status
  }
}
