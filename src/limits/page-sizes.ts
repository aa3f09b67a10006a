import type { Tenant } from './tenants.ts'

/** Usual size of a row, as PostgreSQL sends it, in bytes. */
const ROW_BYTES = 512
/** Time of a deep page of an app whose pages are unknown, in ms. */
const DEEP_MS = 200

/** Remembers how long the rows and the deep pages of an app are, for the class of its next reads. */
export class PageSizes {
  readonly #rowBytes = new WeakMap<Tenant, number>()
  readonly #deepMs = new WeakMap<Tenant, number>()

  /** Mean size of the rows of its last page, in bytes. At first, the usual one. */
  rowBytesOf(tenant: Tenant): number {
    return this.#rowBytes.get(tenant) ?? ROW_BYTES
  }

  measureRows(tenant: Tenant, meanBytes: number): void {
    this.#rowBytes.set(tenant, meanBytes)
  }

  /** Time of its slowest recent deep page, in ms. */
  deepMsOf(tenant: Tenant): number {
    return this.#deepMs.get(tenant) ?? DEEP_MS
  }

  /** Each faster page makes the time of the slowest one a fifth smaller. */
  measureDeepPage(tenant: Tenant, ms: number): void {
    this.#deepMs.set(tenant, Math.max(ms, 0.8 * this.deepMsOf(tenant)))
  }
}
