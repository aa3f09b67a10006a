import type { Limits } from './limits.ts'
import type { Place } from './rejections.ts'
import { Tenant } from './tenants.ts'

/** Tenant of requests that use no limited resource. */
const NOBODY = new Tenant()

/** Admission of one request: whose limits it uses, and its permit. Here alone, the permit is taken and released. */
export class Admission {
  readonly #limits: Limits
  #tenant = NOBODY
  #hasPermit = false
  #isClosed = false

  constructor(limits: Limits) {
    this.#limits = limits
  }

  get tenant(): Tenant {
    return this.#tenant
  }

  /**
   * Takes a permit. A request whose credentials are verified enters again, as its caller.
   * @param callerKey identity of the credentials
   * @throws ProblemError 503 if the tenant uses all that one may have
   */
  enter(ip: string, callerKey?: string): void {
    // The client may have left while its credentials were verified.
    if (this.#isClosed) return
    this.leave()
    this.#tenant = this.#limits.tenants.of(ip, callerKey)
    this.#limits.requests.admit(this.#tenant)
    this.#hasPermit = true
  }

  /** Releases the permit before the end of the request. A rejection that waits uses none. */
  leave(): void {
    if (!this.#hasPermit) return
    this.#hasPermit = false
    this.#limits.requests.release(this.#tenant)
  }

  /** Ends the request. It takes no permit any more. */
  close(): void {
    this.#isClosed = true
    this.leave()
  }

  /**
   * Takes a place in the queue of rejections, outside of the request limit.
   * @param startedAt of the request, on performance.now()'s clock
   */
  placeOfRejection(ip: string, startedAt: number): Place {
    this.leave()
    const { rejections, tenants } = this.#limits
    const tenant = this.#tenant === NOBODY ? tenants.of(ip) : this.#tenant
    return rejections.take(tenant, startedAt)
  }
}
