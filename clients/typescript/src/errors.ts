/** Codes of the errors of the service. */
export const PROBLEM_CODES = [
  'missing_credentials',
  'malformed_credentials',
  'invalid_token',
  'expired_token',
  'invalid_request',
  'malformed_request',
  'connection_not_found',
  'route_not_found',
  'cursor_expired',
  'response_too_large',
  'data_changed',
  'method_not_allowed',
  'too_many_requests',
  'internal_error',
  'service_unavailable',
] as const

/** Code of an error of the service. Later versions of the service may add codes. */
export type ProblemCode = (typeof PROBLEM_CODES)[number] | (string & {})

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

/** Facts of a failed request, the same for every error of the client. */
export interface FailureFacts {
  status?: number | undefined
  headers?: Headers | undefined
  retryAfterMs?: number | undefined
  traceId?: string | undefined
  attempts?: number | undefined
}

/** Error of the client. No message, property or stack has a token or an address. */
export abstract class InvestmentDataError extends Error {
  /** Code for programs. */
  abstract readonly code: string
  /** Status of the response; undefined without a response. */
  readonly status: number | undefined
  /** Headers of the response, without those that may show a token. */
  readonly headers: Headers
  /** Delay in ms that the response asks for with `Retry-After`. */
  readonly retryAfterMs: number | undefined
  /** `X-Request-ID` of the response. Quote it when you report an error. */
  readonly requestId: string | undefined
  /** `X-Client-Trace-ID` of the request. */
  readonly traceId: string | undefined
  /** Attempts of the request, with the first. */
  readonly attempts: number

  constructor(message: string, facts: FailureFacts = {}) {
    super(message)
    this.status = facts.status
    this.headers = facts.headers ?? new Headers()
    this.retryAfterMs = facts.retryAfterMs
    this.requestId = this.headers.get('x-request-id') ?? undefined
    this.traceId = facts.traceId
    this.attempts = facts.attempts ?? 1
  }
}

/** Error response of the service. */
export class ProblemError extends InvestmentDataError {
  override readonly name: string = 'ProblemError'
  declare readonly status: number
  override readonly code: ProblemCode
  readonly detail: string
  declare readonly requestId: string
  /** Invalid parameters of a 400; otherwise empty. */
  readonly errors: readonly ParameterFault[]

  constructor({ status, code, detail, requestId, errors = [] }: Problem, facts: FailureFacts = {}) {
    const faults = errors.map(({ parameter, detail }) => ` ${parameter}: ${detail}`).join('')
    super(`${status} ${code}: ${detail}${faults} (request ${requestId})`, { ...facts, status })
    this.code = code
    this.detail = detail
    this.requestId = requestId
    this.errors = errors
  }
}

/** 401: the token of the app is missing, malformed, unknown, revoked or expired. */
export class AuthenticationError extends ProblemError {
  override readonly name = 'AuthenticationError'
}

/** 429: the app has sent too many requests. `retryAfterMs` is the delay until the next one. */
export class QuotaError extends ProblemError {
  override readonly name = 'QuotaError'
}

/** 410: the changes since the cursor are not known. */
export class CursorExpiredError extends ProblemError {
  override readonly name = 'CursorExpiredError'
}

/** True if a copy must start again: its cursor has expired, or an older version of the service rejects it. */
export function isLostCursor(error: unknown): error is ProblemError {
  if (error instanceof CursorExpiredError) return true
  return error instanceof ProblemError && error.errors.some(({ code }) => code === 'invalid_cursor')
}

/** No response of the service arrived, or one that the client cannot use. */
export class TransportError extends InvestmentDataError {
  override readonly name = 'TransportError'
  /**
   * `timeout` of an attempt, `call_timeout`, `incomplete_body`, `unexpected_response`,
   * `decimals_not_text`, `no_tls`, `cross_origin` in a browser, or a code of the network such as `ECONNRESET`.
   */
  override readonly code: string

  constructor(code: string, message: string, facts: FailureFacts = {}) {
    super(message, facts)
    this.code = code
  }
}

/**
 * Error of a copy:
 * - `conflict` with another process, which has changed the copy or locks the database: synchronize again.
 * - `count_differs`: the copy has another number of rows than the list.
 * - `name_taken`: the database has tables or views of the app with the names of the store. Set a prefix.
 * - `transaction_open`: the app has begun a transaction on the database. End it first. Or a store writes inside `onChanges`.
 * - `transaction_ended`: the `store` of `onChanges` is used after its transaction.
 */
export class CopyError extends InvestmentDataError {
  override readonly name = 'CopyError'
  override readonly code:
    | 'count_differs'
    | 'conflict'
    | 'name_taken'
    | 'transaction_open'
    | 'transaction_ended'

  constructor(code: CopyError['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Error of a store that must not touch a table or view of the app. */
export function nameTaken(name: string, store: string): CopyError {
  const advice = `Rename it, or give the store other names: new ${store}, { prefix: 'copy_' })`
  return new CopyError('name_taken', `The database has a ${name} that no store has made. ${advice}`)
}
