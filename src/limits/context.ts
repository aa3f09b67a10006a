import { Callers } from './callers.ts'
import { Rejections } from './rejections.ts'
import { RequestLimit, Tenant } from './requests.ts'
import { MemoryReservation, ResponseMemory } from './response-memory.ts'

export class Limits {
  readonly requests: RequestLimit
  readonly memory: ResponseMemory
  readonly rejections = new Rejections()
  /** Tenant of requests that are not authenticated, which use no limited resource. */
  readonly nobody = new Tenant()
  readonly callers = new Callers()

  constructor(requests: number, responseBytes: number) {
    this.requests = new RequestLimit(requests)
    this.memory = new ResponseMemory(responseBytes)
  }
}

/** Facts of one request that reads. The first hook makes it, and all layers receive it. */
export class ReadContext {
  /** Start, on performance.now()'s clock. All reads share one deadline. An export sets it anew for each block. */
  startedAt = performance.now()
  tenant: Tenant
  appId: string | undefined
  /** True if no client waits for the response any more. */
  ended = false
  /** Time at which its last read was sent to PostgreSQL, on the same clock. */
  sentAt = 0
  /** Times of its reads, in ms: until they were sent, and in PostgreSQL. Two servers may work at once. */
  waitMs = 0
  databaseMs = 0
  /** Title of the statement that reads the rows. */
  statement: string | undefined
  /** Server of the rows: `primary`, or the name of a replica. */
  server: string | undefined
  readonly limits: Limits
  readonly memory: MemoryReservation

  constructor(limits: Limits, tenant = limits.nobody) {
    this.limits = limits
    this.tenant = tenant
    this.memory = new MemoryReservation(limits.memory, this)
  }

  /** Records the app that a read has found for the caller. */
  confirm(appId: string): void {
    this.appId = appId
  }

  /** Ends the request. @param sent true if the whole response has left the process */
  end(sent: boolean): void {
    this.ended = true
    this.memory.end(sent)
  }
}
