import { type Call, TimeLimit } from './call.ts'
import {
  AuthenticationError,
  CursorExpiredError,
  type FailureFacts,
  type InvestmentDataError,
  type Problem,
  ProblemError,
  QuotaError,
  TransportError,
} from './errors.ts'
import { appToken, functionOf, integerOf, MAX_MS, numberOf } from './options.ts'
import { errorTextOf, jsonOf, UnusableResponse } from './response-body.ts'
import { safeTextOf } from './safe-text.ts'

const VERSION = '2.0.0'

/** Repeated attempts of a request. */
export interface RetryOptions {
  /** Attempts of a request, with the first. Default: 6. */
  attempts?: number
  /** Longest random delay before the second attempt; it doubles with each attempt. Default: 500. */
  baseDelayMs?: number
  /** Longest delay. A longer `Retry-After` ends the attempts. Default: 60,000. */
  maxDelayMs?: number
}

/** End of an attempt, for logs and metrics. It has no address and no token. */
export interface Attempt {
  /** Path after the connection token. */
  list: string
  /** Number of the attempt, from 1. */
  attempt: number
  durationMs: number
  /** Status of the response; undefined without a response. */
  status: number | undefined
  requestId: string | undefined
  traceId: string
  /** Code of the error; undefined after a success. */
  code: string | undefined
  /** Delay before the next attempt; undefined after the last one. */
  delayMs: number | undefined
}

export interface HttpOptions {
  /** Address of the service, such as `https://data.example.com`. */
  baseUrl: string | URL
  /** Token of the app. */
  token: string
  /**
   * Time limit of an attempt, with its body; of each part of an export. Default: 30,000. With the other
   * defaults, a request to a server that never responds fails after 180 s, and up to 15.5 s of delays.
   */
  timeoutMs?: number
  /** Time limit of a call, with all its requests and delays. Default: none. Set it where a user waits. */
  callTimeoutMs?: number
  retry?: RetryOptions
  /** Called after each attempt. An error that it throws ends the call. */
  onAttempt?: (attempt: Attempt) => void
  /** Called once for each list that the service announces to end. Default: `console.warn`. */
  onWarning?: (message: string) => void
  /** Replaces the global `fetch`, for example to add a proxy. */
  fetch?: typeof globalThis.fetch
}

export interface JsonResponse {
  body: unknown
  headers: Headers
}

interface BodyResponse {
  headers: Headers
  parts: AsyncGenerator<Uint8Array, void>
}

/** Success of an attempt, or its error. */
type Result<T> = { value: T } | { error: InvestmentDataError; retry: boolean }

export type Query = Record<string, string | number | undefined>

/** Media type of a request, and its name in the response. */
interface Media {
  accept: string
  type: RegExp
  decimalsAsText: boolean
}

const JSON_TYPE: Media = {
  accept: 'application/json;IEEE754Compatible=true',
  type: /\bjson\b/,
  decimalsAsText: true,
}
export const NDJSON: Media = {
  accept: 'application/x-ndjson;IEEE754Compatible=true',
  type: /\bx-ndjson\b/,
  decimalsAsText: true,
}
export const CSV: Media = { accept: 'text/csv', type: /\bcsv\b/, decimalsAsText: false }

const DECIMALS_AS_TEXT = /;\s*IEEE754Compatible\s*=\s*"?true\b/i
const RETRIED = new Set([429, 500, 502, 503, 504])
/** Codes of Node.js. Not retried: invalid hosts, and those of TLS and certificates. */
const RETRIED_CODES = /^(?!ENOTFOUND|EINVAL|EPROTO)(E[A-Z]+|EAI_AGAIN|UND_ERR_\w+|network_error)$/
/** Headers with addresses, which may have the connection token. */
const UNSAFE_HEADERS = ['location', 'content-location', 'link', 'refresh', 'set-cookie']
const PROBLEMS: Partial<Record<number, typeof ProblemError>> = {
  401: AuthenticationError,
  410: CursorExpiredError,
  429: QuotaError,
}

/** Sends GET requests, and repeats those that failed for a time. */
export class Http {
  readonly #base: URL
  readonly #token: string
  readonly #timeoutMs: number
  readonly #callTimeoutMs: number
  readonly #attempts: number
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #onAttempt: HttpOptions['onAttempt']
  readonly #onWarning: (message: string) => void
  readonly #fetch: typeof globalThis.fetch
  readonly #warnings = new Set<string>()
  #hasResponse = false

  /** @throws TypeError if an option is invalid; its message has no value of an option */
  constructor(options: HttpOptions) {
    const { baseUrl, token, timeoutMs = 30_000, callTimeoutMs, retry = {} } = options
    if (typeof retry !== 'object' || retry === null) throw new TypeError('retry must be an object')
    const { attempts = 6, baseDelayMs = 500, maxDelayMs = 60_000 } = retry
    this.#base = baseOf(baseUrl)
    this.#token = appToken(token)
    this.#timeoutMs = numberOf('timeoutMs', timeoutMs, 1, MAX_MS)
    this.#callTimeoutMs =
      callTimeoutMs === undefined
        ? Number.POSITIVE_INFINITY
        : numberOf('callTimeoutMs', callTimeoutMs, 1, MAX_MS)
    this.#attempts = integerOf('retry.attempts', attempts, 1, 1000)
    this.#baseDelayMs = numberOf('retry.baseDelayMs', baseDelayMs, 0, MAX_MS)
    this.#maxDelayMs = numberOf('retry.maxDelayMs', maxDelayMs, 0, MAX_MS)
    this.#onAttempt = functionOf('onAttempt', options.onAttempt)
    // biome-ignore lint/suspicious/noConsole: "Compatibility" of the page /docs asks clients for a warning.
    this.#onWarning = functionOf('onWarning', options.onWarning) ?? ((text) => console.warn(text))
    // A browser requires that fetch() is called without an object.
    this.#fetch = functionOf('fetch', options.fetch) ?? ((url, init) => globalThis.fetch(url, init))
  }

  /** Begins a call: the limit of its time starts. */
  call(token: string, list: string, traceId = newTraceId(), signal?: AbortSignal): Call {
    return { token, list, traceId, signal, deadline: performance.now() + this.#callTimeoutMs }
  }

  /**
   * Returns the JSON of a 200.
   * @param check throws UnusableResponse for JSON of another form
   * @throws ProblemError for an error of the service, TransportError without a usable response, or the
   * reason of the signal of the call
   */
  get(call: Call, query: Query, check: (body: unknown) => void): Promise<JsonResponse> {
    return this.#repeat(call, query, JSON_TYPE, async (response, limit) => {
      const body = await jsonOf(response)
      limit.end()
      check(body)
      return { body, headers: response.headers }
    })
  }

  /** Returns the headers of a 200, and the parts of its body. No attempt follows the headers. */
  open(call: Call, query: Query, media: Media): Promise<BodyResponse> {
    return this.#repeat(call, query, media, async (response, limit) => {
      limit.pause()
      return { headers: response.headers, parts: this.#parts(call, response, limit) }
    })
  }

  async *#parts(
    call: Call,
    response: Response,
    limit: TimeLimit,
  ): AsyncGenerator<Uint8Array, void> {
    const reader = response.body?.getReader()
    try {
      for (;;) {
        // The time in which the app uses a part does not count.
        limit.start(this.#timeoutMs)
        const part = await reader?.read()
        limit.pause()
        if (part === undefined || part.done) return
        yield part.value
      }
    } catch {
      call.signal?.throwIfAborted()
      throw transportError(limit.expired ?? 'incomplete_body', this.#facts(call, 1, response))
    } finally {
      limit.abandon()
    }
  }

  async #repeat<T>(
    call: Call,
    query: Query,
    media: Media,
    read: (response: Response, limit: TimeLimit) => Promise<T>,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      call.signal?.throwIfAborted()
      const start = performance.now()
      const { result, response } = await this.#attempt(call, attempt, query, media, read)
      call.signal?.throwIfAborted()
      const error = 'error' in result ? result.error : undefined
      const delayMs =
        'error' in result && result.retry ? this.#delayMs(call, result.error) : undefined
      const { headers } = this.#facts(call, attempt, response)
      this.#onAttempt?.({
        list: call.list,
        attempt,
        durationMs: performance.now() - start,
        status: response?.status,
        requestId: headers?.get('x-request-id') ?? undefined,
        traceId: call.traceId,
        code: error?.code,
        delayMs,
      })
      if ('value' in result) return result.value
      if (delayMs === undefined) throw result.error
      await sleep(delayMs, call.signal)
    }
  }

  /** Returns the delay before the next attempt, or undefined if there is none. */
  #delayMs(call: Call, { attempts, retryAfterMs = 0 }: InvestmentDataError): number | undefined {
    if (attempts >= this.#attempts || retryAfterMs > this.#maxDelayMs) return undefined
    const backoff = Math.random() * this.#baseDelayMs * 2 ** (attempts - 1)
    const delay = Math.min(this.#maxDelayMs, retryAfterMs + backoff)
    return performance.now() + delay < call.deadline ? delay : undefined
  }

  async #attempt<T>(
    call: Call,
    attempt: number,
    query: Query,
    media: Media,
    read: (response: Response, limit: TimeLimit) => Promise<T>,
  ): Promise<{ result: Result<T>; response: Response | undefined }> {
    const limit = new TimeLimit(call)
    limit.start(this.#timeoutMs)
    let response: Response | undefined
    try {
      response = await this.#fetch(this.#url(call, query), {
        headers: {
          accept: media.accept,
          authorization: `Bearer ${this.#token}`,
          'user-agent': `investment-data-client-typescript/${VERSION}`,
          'x-client-trace-id': call.traceId,
        },
        redirect: 'manual',
        signal: limit.signal,
      })
      this.#hasResponse = true
      this.#warn(call, response.headers)
      const type = response.headers.get('content-type') ?? ''
      const decimals = !media.decimalsAsText || DECIMALS_AS_TEXT.test(type)
      if (response.status === 200 && media.type.test(type) && decimals)
        return { result: { value: await read(response, limit) }, response }
      const facts = this.#facts(call, attempt, response)
      const safe = safeTextOf([call.token, this.#token])
      const text = await errorTextOf(response)
      const error = errorOf(response.status, text ?? '', media.type.test(type), facts, safe)
      // The rest of a text that is too large.
      if (text === undefined) limit.abandon()
      limit.end()
      return { result: { error, retry: RETRIED.has(response.status) }, response }
    } catch (error) {
      limit.abandon()
      if (error instanceof UnusableResponse) {
        const facts = this.#facts(call, attempt, response)
        const unusable = new TransportError('unexpected_response', error.message, facts)
        return { result: { error: unusable, retry: false }, response }
      }
      // The error of fetch() has the address, and that of JSON.parse() a part of the body.
      const code =
        limit.expired ?? (response === undefined ? this.#codeOf(error) : 'incomplete_body')
      const retry = /^(timeout|incomplete_body)$/.test(code) || RETRIED_CODES.test(code)
      const facts = this.#facts(call, attempt, response)
      return { result: { error: transportError(code, facts), retry }, response }
    }
  }

  /**
   * Returns the code of an error without a response. A browser gives no reason. If it has never got a response from another
   * origin, that origin does not allow the page (CORS), or is unreachable: a repetition rarely helps.
   */
  #codeOf(error: unknown): string {
    const code = codeOf(error)
    const isOther = pageOrigin() !== undefined && pageOrigin() !== this.#base.origin
    return code === 'network_error' && isOther && !this.#hasResponse ? 'cross_origin' : code
  }

  #url({ token, list }: Call, query: Query): URL {
    const path = `api/v1/queries/connections/${encodeURIComponent(token)}/${list}`
    const url = new URL(path, this.#base)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    return url
  }

  #facts({ token, traceId }: Call, attempts: number, response?: Response): FailureFacts {
    if (response === undefined) return { traceId, attempts }
    const secrets = [token, encodeURIComponent(token), this.#token]
    const safe = [...response.headers].filter(
      ([name, value]) =>
        !UNSAFE_HEADERS.includes(name) && !secrets.some((secret) => value.includes(secret)),
    )
    const { status, headers } = response
    return { status, headers: new Headers(safe), traceId, attempts, ...retryAfter(headers) }
  }

  /** Warns once about the end of a list. See "Compatibility" on the page /docs. */
  #warn({ list, token }: Call, headers: Headers): void {
    const safe = safeTextOf([token, this.#token])
    const marks = ['Deprecation', 'Sunset'].flatMap((name) => {
      const value = headers.get(name)
      return value === null ? [] : [`${name}: ${safe(value)}`]
    })
    const message = `The service will end or change ${list} (${marks.join(', ')}). Read its CHANGELOG.md.`
    if (marks.length === 0 || this.#warnings.has(message)) return
    this.#warnings.add(message)
    this.#onWarning(message)
  }
}

function baseOf(baseUrl: string | URL): URL {
  const text = String(baseUrl)
  const base = URL.canParse(text) ? new URL(text) : undefined
  const valid = base !== undefined && /^https?:$/.test(base.protocol) && base.username === ''
  if (!valid) throw new TypeError('baseUrl must be an http or https URL without credentials')
  if (/\/api\/v1(\/|$)/.test(base.pathname))
    throw new TypeError('baseUrl must not have the path /api/v1: the client adds it')
  // Relative paths replace the last segment unless it ends in a slash.
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}

/** Returns the origin of the page or worker in a browser; undefined elsewhere. */
function pageOrigin(): string | undefined {
  return (globalThis as { location?: { origin: string } }).location?.origin
}

/** crypto.randomUUID() is missing in pages without TLS. */
function newTraceId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

function errorOf(
  status: number,
  text: string,
  isType: boolean,
  facts: FailureFacts,
  safe: (text: string) => string,
) {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // A page of a proxy.
  }
  if (isProblem(body) && safe(body.code) === body.code)
    return new (PROBLEMS[status] ?? ProblemError)(safeProblem(body, status, safe), facts)
  const [code, reason] =
    status === 200 && isType
      ? ['decimals_not_text', 'The service cannot send decimals as text']
      : ['unexpected_response', `Status ${status} is not from the service`]
  return new TransportError(code, reason, facts)
}

/** Form of the codes of the service. A later version may add codes. */
const CODE = /^[a-z][a-z0-9_]{0,63}$/

/** Parameters that an error repeats. The service lists 20 at most. */
const MAX_FAULTS = 20

function isProblem(body: unknown): body is Problem {
  if (typeof body !== 'object' || body === null) return false
  const { code, requestId, detail } = body as Partial<Problem>
  if (![code, requestId, detail].every((value) => typeof value === 'string')) return false
  return CODE.test(code as string)
}

/** Makes every text of an error safe for a log. */
function safeProblem(body: Problem, status: number, safe: (text: string) => string): Problem {
  const { code, title, detail, requestId, errors } = body
  const faults = Array.isArray(errors) ? errors.slice(0, MAX_FAULTS) : []
  return {
    status,
    code,
    title: safe(String(title)),
    detail: safe(detail),
    requestId: safe(requestId),
    errors: faults.map((fault) => ({
      parameter: safe(String(fault?.parameter)),
      code: safe(String(fault?.code)),
      detail: safe(String(fault?.detail)),
    })),
  }
}

/** Reads `Data-Refreshed`; null if the service has not refreshed the connection yet. */
export function refreshedAtOf(headers: Headers): Date | null {
  const time = new Date(headers.get('data-refreshed') ?? '')
  return Number.isNaN(time.getTime()) ? null : time
}

/** Reads `Retry-After`, in seconds or as an HTTP date. */
function retryAfter(headers: Headers): { retryAfterMs?: number } {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? {} : { retryAfterMs: Math.max(0, ms) }
}

const MESSAGES: Record<string, string> = {
  timeout: 'No complete response arrived in time',
  call_timeout: 'The call did not end in time',
  incomplete_body: 'The response is incomplete',
  unexpected_response: 'The response is not from the service',
  cross_origin:
    'The browser got no response from another origin. The service allows no pages of others (CORS): send the requests from your server',
  no_tls: 'The port does not speak TLS: use http, or another port',
  ENOTFOUND: 'The host of the service is unknown',
  ECONNREFUSED: 'No server listens at the address of the service',
}

export function transportError(code: string, facts?: FailureFacts): TransportError {
  return new TransportError(code, MESSAGES[code] ?? `The request failed: ${code}`, facts)
}

/** What OpenSSL makes of a response without TLS. */
const NO_TLS = /WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/

/** Returns the code of a network error, which Node.js gives as its cause. Browsers give none. */
function codeOf(error: unknown): string {
  const { cause } = error as { cause?: { name?: unknown; code?: unknown } }
  if (cause?.name === 'HTTPParserError') return 'unexpected_response'
  const code = String(cause?.code ?? '')
  if (NO_TLS.test(code)) return 'no_tls'
  return /^[A-Z][A-Z0-9_]+$/.test(code) ? code : 'network_error'
}

/** Waits. Rejects with the reason of `signal` if it is aborted. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      if (signal?.aborted) reject(signal.reason)
      else resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end, { once: true })
  })
}
