import { setTimeout as sleep } from 'node:timers/promises'
import { mayTake, type Tenant } from './tenants.ts'

/** Rejections of a tenant without a delay. After them, one more is free of delay every TENANT_INTERVAL_MS. */
const AT_ONCE = 100
/** Time between two rejections of a tenant that repeats them, and between two of all these tenants, in ms. */
const TENANT_INTERVAL_MS = 50
const INTERVAL_MS = 2
/** Duration of a request after which its rejection does not wait, in ms. */
const MAX_WAIT_MS = 5_000
/** Each holds a connection and the objects of its request: about 15 KB. */
const MAX_WAITING = 2_000

/** Delays repeated rejections. A client could otherwise keep the event loop busy: a rejection takes only 0.3 ms. */
export class Rejections {
  waiting = 0
  #nextAt = 0

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
