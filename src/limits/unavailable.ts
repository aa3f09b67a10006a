/** The service cannot respond now, because a limit is reached or a server failed. A later request may succeed. */
export class Unavailable extends Error {
  override name = 'Unavailable'

  /** Has no stack: during an outage, every request creates one of these errors. */
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }

  /** Without a cause, it comes from a limit of this service. */
  get reason(): 'database' | 'identity_provider' | 'overload' {
    return this.cause ? 'database' : 'overload'
  }
}
