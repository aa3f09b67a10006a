import { problem } from '../schemas/problem.ts'
import { mayTake, type Tenant } from './tenants.ts'

/** Maximum number of requests in flight. One tenant may use only a part of them. */
export class RequestLimit {
  readonly maximum: number
  #inFlight = 0

  constructor(maximum: number) {
    this.maximum = maximum
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** Admits a request of a tenant. @throws ProblemError 503 if the tenant uses all that one may have */
  admit(tenant: Tenant): Permit {
    if (!mayTake(1, tenant.requests, this.maximum - this.#inFlight)) {
      const detail = 'Too many requests are in flight. Try again soon.'
      throw problem('service_unavailable', { detail })
    }
    this.#inFlight += 1
    tenant.requests += 1
    let isReleased = false
    const release = () => {
      if (isReleased) return
      isReleased = true
      this.#inFlight -= 1
      tenant.requests -= 1
    }
    return { release }
  }
}

/** Permit of an admitted request. Only the first call of `release` counts. */
export interface Permit {
  release(): void
}
