import { setTimeout as sleep } from 'node:timers/promises'
import { Shares } from './shares.ts'
import type { Tenant } from './tenants.ts'

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
export interface Place {
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
  /** Rejections of each tenant that wait. */
  readonly shares = new Shares()
  readonly #lastAt = new WeakMap<Tenant, number>()
  #nextAt = 0

  /** Number of those that wait. */
  get waiting(): number {
    return this.shares.used
  }

  /** Takes a place in the queue. @param startedAt of the request, on performance.now()'s clock */
  take(tenant: Tenant, startedAt: number): Place {
    const now = performance.now()
    const begins = this.#begins(tenant, startedAt, now)
    const isRepeated = this.lastAt(tenant) > now
    return { begins, repeatedBy: isRepeated ? tenant : undefined }
  }

  /** Time of the last rejection of a tenant, on performance.now()'s clock. It may be in the future. */
  lastAt(tenant: Tenant): number {
    return this.#lastAt.get(tenant) ?? Number.NEGATIVE_INFINITY
  }

  async #begins(tenant: Tenant, startedAt: number, now: number): Promise<boolean> {
    const earliest = now - AT_ONCE * TENANT_INTERVAL_MS
    const nextAt = Math.max(this.lastAt(tenant), earliest) + TENANT_INTERVAL_MS
    const latest = startedAt + MAX_WAIT_MS
    this.#lastAt.set(tenant, Math.min(nextAt, now + MAX_WAIT_MS))
    if (nextAt <= now || latest <= now) return true
    if (!this.shares.mayTake(tenant, 1, MAX_WAITING)) return false
    this.#nextAt = Math.max(this.#nextAt, now) + INTERVAL_MS
    this.shares.add(tenant, 1)
    await sleep(Math.min(Math.max(nextAt, this.#nextAt), latest) - now)
    this.shares.add(tenant, -1)
    return true
  }
}
