/** An app, or the network of callers whose app is unknown. Tenants share the service fairly. */
export class Tenant {
  /** Undefined for a network. */
  readonly appId: string | undefined
  requests = 0
  bytes = 0
  /** Mean size of the rows of its last page, as PostgreSQL sends them, in bytes. At first, the usual one. */
  rowBytes = 512
  /** Rejections that wait, and the time of the last one, on performance.now()'s clock. */
  rejections = 0
  rejectionAt = 0
  /** Repeated rejections without a line in the log, and time of the last one with a line. */
  unlogged = 0
  loggedAt = Number.NEGATIVE_INFINITY

  constructor(appId?: string) {
    this.appId = appId
  }
}

/**
 * Returns true if a tenant may take more of a limited resource. A third of what it then has must stay free, so a new
 * tenant always finds room (dynamic thresholds of Choudhury and Hahne, 1998). One tenant has at most three quarters;
 * two have at most three sevenths each. A tenant that has nothing may take all that is free.
 * @param has what the tenant has now
 * @param free what no tenant has now
 */
export function mayTake(more: number, has: number, free: number): boolean {
  return has === 0 ? more <= free : has + more <= 3 * (free - more)
}

/** Limits the requests in flight of an instance, and the share of each tenant. */
export class RequestLimit {
  readonly #maximum: number
  #requests = 0

  constructor(maximum: number) {
    this.#maximum = maximum
  }

  get full(): boolean {
    return this.#requests >= this.#maximum
  }

  /** Counts a request. The caller must call leave(). @returns false if the tenant has its share */
  enter(tenant: Tenant): boolean {
    if (!mayTake(1, tenant.requests, this.#maximum - this.#requests)) return false
    this.#requests += 1
    tenant.requests += 1
    return true
  }

  leave(tenant: Tenant): void {
    this.#requests -= 1
    tenant.requests -= 1
  }
}
