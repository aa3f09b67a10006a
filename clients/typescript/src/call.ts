/** Connection of a call, its list, and its limits. */
export interface Call {
  /** Token of the connection. */
  token: string
  list: string
  traceId: string
  signal: AbortSignal | undefined
  /** End of the call, as performance.now(). */
  deadline: number
}

/** Aborts a request when its time or that of its call is over, or when the app ends the call. */
export class TimeLimit {
  readonly #controller = new AbortController()
  readonly #call: Pick<Call, 'deadline' | 'signal'>
  readonly #abort = () => this.#controller.abort()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Limit that was exceeded. */
  expired: 'timeout' | 'call_timeout' | undefined

  constructor(call: Pick<Call, 'deadline' | 'signal'>) {
    this.#call = call
    call.signal?.addEventListener('abort', this.#abort)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  start(ms: number): void {
    const left = Math.max(0, this.#call.deadline - performance.now())
    this.#timer = setTimeout(
      () => {
        this.expired = left < ms ? 'call_timeout' : 'timeout'
        this.#abort()
      },
      Math.min(ms, left),
    )
  }

  pause(): void {
    clearTimeout(this.#timer)
  }

  /** Ends the limit after a complete response. An abort could close its connection. */
  end(): void {
    this.pause()
    this.#call.signal?.removeEventListener('abort', this.#abort)
  }

  /** Ends the limit and an incomplete response. */
  abandon(): void {
    this.end()
    this.#abort()
  }
}
