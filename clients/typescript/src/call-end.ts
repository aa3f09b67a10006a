import type { Call } from './call.ts'
import { transportError } from './http.ts'

/** End of a call, for what it waits for besides responses: its time is over, or the app ends it. */
export class CallEnd {
  readonly #controller = new AbortController()
  readonly #call: Call
  readonly #abort = () => this.#controller.abort(this.#call.signal?.reason)
  readonly #timer: ReturnType<typeof setTimeout> | undefined

  constructor(call: Call) {
    this.#call = call
    if (call.signal?.aborted) this.#abort()
    call.signal?.addEventListener('abort', this.#abort)
    if (Number.isFinite(call.deadline))
      this.#timer = setTimeout(
        () => this.#controller.abort(this.#timeout()),
        Math.max(0, call.deadline - performance.now()),
      )
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** @throws TransportError `call_timeout` after the time of the call, or the reason of the app's signal */
  check(): void {
    this.signal.throwIfAborted()
    if (performance.now() >= this.#call.deadline) throw this.#timeout()
  }

  /** Waits for a promise until the end of the call. */
  until<T>(promise: Promise<T>): Promise<T> {
    return until(this.signal, promise)
  }

  /** Removes the timer and the listener after the call. */
  close(): void {
    clearTimeout(this.#timer)
    this.#call.signal?.removeEventListener('abort', this.#abort)
  }

  #timeout(): Error {
    return transportError('call_timeout', { traceId: this.#call.traceId })
  }
}

/** Waits for a promise until a signal aborts. The promise then goes on alone. */
export async function until<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (signal === undefined) return promise
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason)
  })
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
