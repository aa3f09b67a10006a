import type { Tenant } from './tenants.ts'

/** Most that a tenant may have, as a multiple of what stays free: three quarters if it is alone, three sevenths each of two. */
const TIMES_FREE = 3

/**
 * Returns true if a tenant may take more of a limited resource. What stays free is room for a new tenant (dynamic
 * thresholds, Choudhury and Hahne, 1998). A tenant that has nothing may take all that is free.
 */
export function mayTake(more: number, has: number, free: number): boolean {
  if (has === 0) return more <= free
  const staysFree = free - more
  return has + more <= TIMES_FREE * staysFree
}

/** Returns true if a tenant could take more if it were alone. If not, it can never do so. */
export function fitsAlone(more: number, has: number, total: number): boolean {
  return mayTake(more, has, total - has)
}

/** What tenants have of a limited resource. */
export class Shares {
  readonly #has = new WeakMap<Tenant, number>()
  #used = 0

  /** What all tenants have together. */
  get used(): number {
    return this.#used
  }

  /** Returns true if a tenant may take more. @param limit of what all tenants may have together */
  mayTake(tenant: Tenant, more: number, limit: number): boolean {
    return mayTake(more, this.of(tenant), limit - this.#used)
  }

  /** Returns what a tenant has. */
  of(tenant: Tenant): number {
    return this.#has.get(tenant) ?? 0
  }

  /** Adds to what a tenant has. @param more negative for what it gives back */
  add(tenant: Tenant, more: number): void {
    this.#has.set(tenant, this.of(tenant) + more)
    this.#used += more
  }
}
