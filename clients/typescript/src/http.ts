import { type Problem, ProblemError, TransportError } from './errors.ts'

/** Repeated attempts of a request. */
export interface RetryOptions {
  /** Attempts of a request, with the first. Default: 6. */
  attempts?: number
  /** Longest random delay before the second attempt; it doubles with each attempt. Default: 500. */
  baseDelayMs?: number
  /** Longest delay. A longer `Retry-After` ends the attempts. Default: 60,000. */
  maxDelayMs?: number
}

export interface HttpOptions {
  /** Address of the service, such as `https://data.example.com`. */
  baseUrl: string | URL
  /** Token of the app. */
  token: string
  /** Time limit of an attempt, with its body. Default: 30,000. */
  timeoutMs?: number
  retry?: RetryOptions
  /** Replaces the global `fetch`, for example to add a proxy. */
  fetch?: typeof globalThis.fetch
}

export interface JsonResponse {
  body: unknown
  headers: Headers
}

/** Failure of an attempt. */
interface Failure {
  error: Error
  /** True if a later attempt may succeed. */
  retry: boolean
  retryAfterMs?: number
}

export type Query = Record<string, string | number | undefined>

const ACCEPT = 'application/json;IEEE754Compatible=true'
const DECIMALS_AS_TEXT = /;\s*IEEE754Compatible\s*=\s*"?true\b/i
const RETRIED = new Set([429, 500, 502, 503, 504])

/** Sends GET requests, and repeats those that failed for a time. */
export class Http {
  readonly #base: URL
  readonly #headers: Record<string, string>
  readonly #timeoutMs: number
  readonly #attempts: number
  readonly #baseDelayMs: number
  readonly #maxDelayMs: number
  readonly #fetch: typeof globalThis.fetch

  /** @throws TypeError if an option is invalid; its message has no value of an option */
  constructor({ baseUrl, token, timeoutMs = 30_000, retry = {}, fetch }: HttpOptions) {
    this.#base = baseOf(baseUrl)
    // An error of fetch() would show an invalid token.
    if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError('token must be visible ASCII characters')
    this.#headers = { accept: ACCEPT, authorization: `Bearer ${token}` }
    this.#timeoutMs = timeoutMs
    this.#attempts = Math.max(1, retry.attempts ?? 6)
    this.#baseDelayMs = retry.baseDelayMs ?? 500
    this.#maxDelayMs = retry.maxDelayMs ?? 60_000
    // A browser requires that fetch() is called without an object.
    this.#fetch = fetch ?? ((input, init) => globalThis.fetch(input, init))
  }

  /**
   * Returns the JSON of a 200.
   * @throws ProblemError for an error of the service, TransportError without a usable response, or the
   * reason of `signal`
   */
  async get(path: string, query: Query, signal?: AbortSignal): Promise<JsonResponse> {
    const url = new URL(path, this.#base)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    for (let attempt = 1; ; attempt += 1) {
      signal?.throwIfAborted()
      const result = await this.#attempt(url, signal)
      if ('body' in result) return result
      signal?.throwIfAborted()
      const delay = this.#delayMs(attempt, result.retryAfterMs ?? 0)
      if (!result.retry || attempt >= this.#attempts || delay === undefined) throw result.error
      await sleep(delay, signal)
    }
  }

  /** Returns `Retry-After` plus a random part, or undefined if the service asks for a longer delay. */
  #delayMs(attempt: number, retryAfterMs: number): number | undefined {
    if (retryAfterMs > this.#maxDelayMs) return undefined
    const backoff = this.#baseDelayMs * 2 ** (attempt - 1)
    return Math.min(this.#maxDelayMs, retryAfterMs + Math.random() * backoff)
  }

  async #attempt(url: URL, signal?: AbortSignal): Promise<JsonResponse | Failure> {
    const controller = new AbortController()
    const abort = () => controller.abort()
    const timer = setTimeout(abort, this.#timeoutMs)
    signal?.addEventListener('abort', abort, { once: true })
    let response: Response | undefined
    try {
      const init = {
        headers: this.#headers,
        redirect: 'manual',
        signal: controller.signal,
      } as const
      response = await this.#fetch(url, init)
      return read(response, await response.text())
    } catch (error) {
      // The error of fetch() has the address, so it is not the cause of the new error.
      if (controller.signal.aborted) return transportFailure('timeout')
      return transportFailure(response === undefined ? codeOf(error) : 'incomplete_body')
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
  }
}

function baseOf(baseUrl: string | URL): URL {
  const text = String(baseUrl)
  const base = URL.canParse(text) ? new URL(text) : undefined
  const valid = base !== undefined && /^https?:$/.test(base.protocol) && base.username === ''
  if (!valid) throw new TypeError('baseUrl must be an http or https URL without credentials')
  // Relative paths replace the last segment unless it ends in a slash.
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}

function read({ status, headers }: Response, text: string): JsonResponse | Failure {
  const type = headers.get('content-type') ?? ''
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    // The error of JSON.parse() shows a part of the body.
    if (status === 200 && /\bjson\b/.test(type)) return transportFailure('incomplete_body')
  }
  if (status === 200 && DECIMALS_AS_TEXT.test(type) && body !== undefined) return { body, headers }
  const failure = { retry: RETRIED.has(status), ...retryAfter(headers) }
  if (isProblem(body)) return { error: new ProblemError(body), ...failure }
  const [code, reason] =
    status === 200 && /\bjson\b/.test(type)
      ? ['decimals_not_text', 'The service cannot send decimals as text']
      : ['unexpected_response', `Status ${status} is not from the service`]
  return { error: new TransportError(code, reason, status), ...failure }
}

function isProblem(body: unknown): body is Problem {
  if (typeof body !== 'object' || body === null) return false
  const { code, requestId, detail } = body as Partial<Problem>
  return [code, requestId, detail].every((value) => typeof value === 'string')
}

/** Reads `Retry-After`, in seconds or as an HTTP date. */
function retryAfter(headers: Headers): { retryAfterMs?: number } {
  const text = headers.get('retry-after') ?? ''
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(ms) ? {} : { retryAfterMs: Math.max(0, ms) }
}

function transportFailure(code: string): Failure {
  const reason =
    code === 'timeout'
      ? 'No complete response arrived in time'
      : code === 'incomplete_body'
        ? 'The response is incomplete'
        : `The request failed: ${code}`
  return { error: new TransportError(code, reason), retry: true }
}

/** Returns the code of a network error, which Node.js gives as its cause. Browsers give none. */
function codeOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: unknown } }
  const code = String(cause?.code ?? '')
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
