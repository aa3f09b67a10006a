import { problem } from '../schemas/problem.ts'
import { Shares } from './shares.ts'
import type { Tenant } from './tenants.ts'

/** Maximum number of requests in flight. One tenant may use only a part of them. */
export class RequestLimit {
  readonly maximum: number
  /** Requests in flight of each tenant. */
  readonly shares = new Shares()

  constructor(maximum: number) {
    this.maximum = maximum
  }

  get inFlight(): number {
    return this.shares.used
  }

  /** Admits a request of a tenant. @throws ProblemError 503 if the tenant uses all that one may have */
  admit(tenant: Tenant): void {
    if (!this.shares.mayTake(tenant, 1, this.maximum)) {
      const detail = 'Too many requests are in flight. Try again soon.'
      throw problem('service_unavailable', { detail })
    }
    this.shares.add(tenant, 1)
  }

  /** Ends an admitted request. The caller calls it once, for the same tenant. */
  release(tenant: Tenant): void {
    this.shares.add(tenant, -1)
  }
}
