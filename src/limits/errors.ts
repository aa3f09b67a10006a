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
}

/** The response needs more memory than the app may have now. Fewer rows may fit. */
export class ResponseTooLarge extends Unavailable {
  override name = 'ResponseTooLarge'
  /** True if the response does not even fit alone: a repetition would fail, too. */
  readonly always: boolean

  constructor(always: boolean) {
    super('the response exceeds the memory')
    this.always = always
  }
}

/** A table of the statement is locked, so the statement was not sent. */
export class TableLocked extends Unavailable {
  override name = 'TableLocked'
}
