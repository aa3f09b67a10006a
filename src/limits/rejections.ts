import { setTimeout as sleep } from 'node:timers/promises'
import { mayTake, type Tenant } from './tenants.ts'

/** Rejections of a tenant without a delay. After them, one more is free of delay every TENANT_INTERVAL_MS. */
const AT_ONCE = 100
/** Time between two delayed rejections of a tenant, and between two of all tenants, in ms. */
const TENANT_INTERVAL_MS = 50
const INTERVAL_MS = 2
/** Duration of a request after which its response does not wait, in ms. */
const MAX_WAIT_MS = 5_000
/** Each holds a connection and the objects of its request: about 15 KB. */
const MAX_WAITING = 2_000

/** A place in the queue of rejections. */
export interface Turn {
  /** False if too many wait: the connection must then be closed. */
  begins: Promise<boolean>
  /** The tenant, if it repeats its requests: the log has samples of them. */
  repeatedBy: Tenant | undefined
}

/**
 * Delays repeated rejections, and responses that need no credentials. A client could otherwise keep the event loop busy:
 * such a response takes only 0.3 ms.
 */
export class Rejections {
  waiting = 0
  #nextAt = 0

  /** Takes a place in the queue. @param startedAt of the request, on performance.now()'s clock */
  take(tenant: Tenant, startedAt: number): Turn {
    const begins = this.turn(tenant, startedAt)
    const isRepeated = tenant.rejectionAt > performance.now()
    return { begins, repeatedBy: isRepeated ? tenant : undefined }
  }

  /** Waits for the turn of a rejection. @returns false if too many wait: the connection must then be closed */
  async turn(tenant: Tenant, startedAt: number): Promise<boolean> {
    const now = performance.now()
    const earliest = now - AT_ONCE * TENANT_INTERVAL_MS
    const nextAt = Math.max(tenant.rejectionAt, earliest) + TENANT_INTERVAL_MS
    const latest = startedAt + MAX_WAIT_MS
    tenant.rejectionAt = Math.min(nextAt, now + MAX_WAIT_MS)
    if (nextAt <= now || latest <= now) return true
    if (!mayTake(1, tenant.rejections, MAX_WAITING - this.waiting)) return false
    this.#nextAt = Math.max(this.#nextAt, now) + INTERVAL_MS
    this.waiting += 1
    tenant.rejections += 1
    await sleep(Math.min(Math.max(nextAt, this.#nextAt), latest) - now)
    this.waiting -= 1
    tenant.rejections -= 1
    return true
  }
}
