import { Tenant } from '../limits/tenants.ts'
import type { Reader } from './reader.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

/** Tenant of health checks and metrics. */
const PROBES = new Tenant()

/** One SELECT, from the time at which it is asked for until its rows or its error are known. */
export class Read {
  readonly statement: Statement
  readonly values: Parameter[]
  /** Undefined for a probe, which waits in no queue. */
  readonly reader: Reader | undefined
  readonly tenant: Tenant
  /** True for a block of a response that has begun. It waits without a limit, because a cut response is lost. */
  readonly isContinued: boolean
  readonly askedAt = performance.now()
  /** Time of the last attempt, on performance.now()'s clock; 0 before the first one. */
  sentAt = 0
  /** True if no other read may share the session. */
  isExclusive = false
  /** True after the first attempt has failed. A second failure is final. */
  isRepeated = false
  readonly promise: Promise<RawRows>
  readonly #resolve: (rows: RawRows) => void
  readonly #reject: (error: unknown) => void
  readonly #maxMs: number
  #isEnded = false

  /** @param maxMs from the start of the request, or of the block, until the read has no more attempts */
  constructor(
    statement: Statement,
    values: Parameter[],
    maxMs: number,
    reader: Reader | undefined,
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<RawRows>()
    this.statement = statement
    this.values = values
    this.reader = reader
    this.tenant = reader?.tenant ?? PROBES
    this.isContinued = reader?.hasBegun ?? false
    this.promise = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#maxMs = maxMs
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** True if its client is gone. */
  get isUnwanted(): boolean {
    return this.reader?.memory.isClosed ?? false
  }

  /** Time at which it ends with an error, on performance.now()'s clock. */
  get dueAt(): number {
    if (this.isContinued)
      return (this.sentAt === 0 ? Number.POSITIVE_INFINITY : this.sentAt) + this.#maxMs
    return (this.reader?.startedAt ?? this.askedAt) + this.#maxMs
  }

  /** Ends the read, once. One that was overdue may end again in PostgreSQL. */
  end(error: unknown, rows?: RawRows): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.reader?.endRead(this.statement.title, this.askedAt, this.sentAt, error)
    if (rows && !error) this.#resolve(rows)
    else this.#reject(error)
  }
}
