import type { Span } from '@opentelemetry/api'
import type { Tenant } from './limits/tenants.ts'
import type { Unavailable } from './limits/unavailable.ts'
import type { ProblemCode } from './schemas/problem.ts'

/** What is known of one request, for its log line, its metrics and its trace. Nothing else depends on it. */
interface Facts {
  /** Time at which its headers were read, on performance.now()'s clock. */
  receivedAt: number
  span: Span | undefined
  appId: string | undefined
  statement: string | undefined
  /** Server of the rows: `primary`, or the name of a replica. */
  server: string | undefined
  /** Times of its reads, in ms: until they were sent, and in PostgreSQL. Two servers may work at once. */
  waitMs: number
  databaseMs: number
  items: number | undefined
  mediaType: string | undefined
  /** Time at which its rows were read, on performance.now()'s clock. */
  writingAt: number | undefined
  errorCode: ProblemCode | undefined
  unavailableReason: Unavailable['reason'] | undefined
  /** Tenant of a repeated rejection, whose log lines are sampled. */
  repeatedBy: Tenant | undefined
}

export type RequestFacts = Readonly<Facts>

/** Records the facts of one request. Each method is called where the fact is found. */
export class FactRecorder {
  readonly #facts: Facts

  constructor(receivedAt = performance.now()) {
    this.#facts = {
      receivedAt,
      span: undefined,
      appId: undefined,
      statement: undefined,
      server: undefined,
      waitMs: 0,
      databaseMs: 0,
      items: undefined,
      mediaType: undefined,
      writingAt: undefined,
      errorCode: undefined,
      unavailableReason: undefined,
      repeatedBy: undefined,
    }
  }

  get facts(): RequestFacts {
    return this.#facts
  }

  trace(span: Span): void {
    this.#facts.span = span
  }

  identify(appId: string): void {
    this.#facts.appId = appId
  }

  /** @param server that runs the statement, or whose rows are sent */
  read(statement: string, server: string): void {
    this.#facts.statement = statement
    this.#facts.server = server
  }

  endRead(waitMs: number, databaseMs: number): void {
    this.#facts.waitMs += waitMs
    this.#facts.databaseMs += databaseMs
  }

  startResponse(items: number, mediaType: string): void {
    this.#facts.items = items
    this.#facts.mediaType = mediaType
    this.#facts.writingAt = performance.now()
  }

  fail(code: ProblemCode): void {
    this.#facts.errorCode = code
  }

  failUnavailable(reason: Unavailable['reason']): void {
    this.#facts.unavailableReason = reason
  }

  repeat(tenant: Tenant | undefined): void {
    this.#facts.repeatedBy = tenant
  }
}
