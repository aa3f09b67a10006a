import type { Span } from '@opentelemetry/api'
import { Rejections } from './limits/rejections.ts'
import { ResponseMemory } from './limits/response-memory.ts'
import { mayTake, Tenant, Tenants } from './limits/tenants.ts'
import type { Unavailable } from './limits/unavailable.ts'
import { DEFAULT_LIMIT } from './schemas/list.ts'
import { type ProblemCode, problem } from './schemas/problem.ts'

/** Resources that the requests of an instance share. */
export class Limits {
  /** Called with each read of a request when it has ended. */
  readonly readListeners: ((read: EndedRead) => void)[] = []
  requests = 0
  readonly maxRequests: number
  readonly memory: ResponseMemory
  readonly rejections = new Rejections()
  readonly tenants = new Tenants()

  constructor(maxRequests: number, responseBytes: number) {
    this.maxRequests = maxRequests
    this.memory = new ResponseMemory(responseBytes)
  }
}

export interface Caller {
  method: 'tokenHash' | 'clientId'
  /** $1 of each statement: the SHA-256 of the app token as a bytea, or the verified client id. */
  credential: string
  /** Identity of the credentials. */
  key: string
}

export interface EndedRead {
  context: RequestContext
  statement: string
  /** Including the wait for a connection. */
  durationMs: number
  error: unknown
}

/** Requests for more bytes are large, and those for more rows than the default `limit`. */
const SMALL_BYTES = 1_048_576
/** A page that may skip more rows is deep. PostgreSQL reads each row that it skips within a month. */
const SMALL_SKIPPED = 10_000
/** Limit in ms: slower deep pages of an app are large. Reads on the same session wait as long behind a deep page. */
const SLOW_MS = 100

/** Tenant of requests that use no limited resource. */
const NOBODY = new Tenant()

/** Facts of one request: for its reads, its log line, its metrics and its trace. All layers receive it. */
export class RequestContext {
  /** Start, on performance.now()'s clock. All reads share one deadline. An export sets it anew for each block. */
  startedAt = performance.now()
  tenant: Tenant
  caller: Caller | undefined
  appId: string | undefined
  /** True if no client waits for the response any more. */
  ended = false
  /** Time at which its last read was sent to PostgreSQL, on the same clock. */
  sentAt = 0
  /** Times of its reads, in ms: until they were sent, and in PostgreSQL. Two servers may work at once. */
  waitMs = 0
  databaseMs = 0
  statement: string | undefined
  /** Server of the rows: `primary`, or the name of a replica. */
  server: string | undefined
  errorCode: ProblemCode | undefined
  unavailableReason: Unavailable['reason'] | undefined
  items: number | undefined
  mediaType: string | undefined
  /** Time at which the first rows were read, on performance.now()'s clock. */
  writingAt: number | undefined
  /** Tenant of a repeated rejection, whose log lines are sampled. */
  repeatedBy: Tenant | undefined
  span: Span | undefined
  readonly limits: Limits
  /** Class of its reads, and memory that they need at least, in bytes. */
  large = false
  deep = false
  expectedBytes = 1
  bytes = 0
  /** Memory of its body, for reuse. */
  bodyMemory: Buffer | undefined
  #entered = false

  constructor(limits: Limits, tenant = NOBODY) {
    this.limits = limits
    this.tenant = tenant
  }

  /** Makes a context for a read that goes on after the client has disconnected. */
  separate(): RequestContext {
    const context = new RequestContext(this.limits, this.tenant)
    context.span = this.span
    return context
  }

  /** Takes a share of the requests in flight. @throws ProblemError 503 if the tenant has its share */
  enter(ip: string, caller?: Caller): void {
    this.caller = caller
    if (this.ended) return
    this.#leave()
    const { limits } = this
    const tenant = limits.tenants.of(ip, caller?.key)
    this.tenant = tenant
    if (!mayTake(1, tenant.requests, limits.maxRequests - limits.requests)) {
      const detail = 'Too many requests are in flight. Try again soon.'
      throw problem('service_unavailable', { detail })
    }
    this.#entered = true
    limits.requests += 1
    tenant.requests += 1
  }

  /** @param skipped rows that PostgreSQL may have to skip before these */
  expectRows(rows: number, skipped = 0): void {
    const { rowBytes, deepMs } = this.tenant
    const bytes = rows * rowBytes
    this.deep = skipped > SMALL_SKIPPED
    this.large = rows > DEFAULT_LIMIT || bytes > SMALL_BYTES || (this.deep && deepMs > SLOW_MS)
    // Most small responses have few rows. The number of transfer orders is unknown.
    if (this.large && rows < Number.POSITIVE_INFINITY)
      this.expectedBytes = Math.min(bytes, this.limits.memory.limit / 4)
  }

  /** Records the app that a read has found for the caller. */
  confirm(appId: string): void {
    this.appId = appId
    if (this.caller) this.limits.tenants.learn(this.caller.key, appId)
  }

  /** Forgets the app of a caller whose credentials a read has rejected. */
  forgetCaller(): void {
    if (this.caller) this.limits.tenants.forget(this.caller.key)
  }

  /** Waits for the turn of a rejection, outside of the request limit. @returns false if too many wait */
  waitToReject(ip: string): Promise<boolean> {
    const { rejections, tenants } = this.limits
    this.#leave()
    const tenant = this.tenant === NOBODY ? tenants.of(ip) : this.tenant
    const turn = rejections.turn(tenant, this.startedAt)
    if (tenant.rejectionAt > performance.now()) this.repeatedBy = tenant
    return turn
  }

  /** Records a read that began at `askedAt`. */
  endRead(statement: string, askedAt: number, error: unknown): void {
    const endedAt = performance.now()
    const sentAt = this.sentAt < askedAt ? endedAt : this.sentAt
    this.waitMs += sentAt - askedAt
    this.databaseMs += endedAt - sentAt
    const read = { context: this, statement, durationMs: endedAt - askedAt, error }
    for (const listener of this.limits.readListeners) listener(read)
  }

  /** Ends the request. If its response was `sent`, others reuse the memory of its body: its writer must stop. */
  end(sent: boolean): void {
    const { memory } = this.limits
    if (sent && this.bodyMemory) memory.giveBack(this, this.bodyMemory)
    memory.count(this, -this.bytes)
    this.bodyMemory = undefined
    this.ended = true
    this.#leave()
  }

  #leave(): void {
    if (!this.#entered) return
    this.#entered = false
    this.limits.requests -= 1
    this.tenant.requests -= 1
  }
}
