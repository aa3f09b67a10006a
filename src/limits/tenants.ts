import { FifoMap, LruMap } from 'toad-cache'

/** An app, or the network of callers whose app is unknown. Tenants share the service fairly. */
export class Tenant {
  /** Undefined for a network. */
  readonly appId: string | undefined
  requests = 0
  bytes = 0
  #rowBytes = 512
  #deepMs = 200
  /** Rejections that wait, and the time of the last one, on performance.now()'s clock. */
  rejections = 0
  rejectionAt = Number.NEGATIVE_INFINITY
  /** Open connections of an address. */
  sockets = 0
  /** Repeated rejections without a line in the log, and time of the last one with a line. */
  unlogged = 0
  loggedAt = Number.NEGATIVE_INFINITY

  constructor(appId?: string) {
    this.appId = appId
  }

  /** Mean size of the rows of its last page, as PostgreSQL sends them, in bytes. At first, the usual one. */
  get rowBytes(): number {
    return this.#rowBytes
  }

  measureRows(meanBytes: number): void {
    this.#rowBytes = meanBytes
  }

  /** Time of its slowest recent deep page, in ms. */
  get deepMs(): number {
    return this.#deepMs
  }

  /** Each faster page makes the time of the slowest one a fifth smaller. */
  measureDeepPage(ms: number): void {
    this.#deepMs = Math.max(ms, 0.8 * this.#deepMs)
  }
}

/** A tenant has at most this many times what stays free. One tenant alone then has three quarters, two have three sevenths each. */
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

/** Maximum of callers that an instance remembers, and of apps and networks. It drops the oldest. */
const MAX_CALLERS = 50_000
const MAX_TENANTS = 10_000

/** Finds the tenant of a caller: the app of its last read, or the network of its address. It grants no access. */
export class Tenants {
  readonly #appOf = new FifoMap<Tenant>(MAX_CALLERS)
  readonly #apps = new LruMap<Tenant>(MAX_TENANTS)
  readonly #networks = new LruMap<Tenant>(MAX_TENANTS)

  of(ip: string, key?: string): Tenant {
    const app = key && this.#appOf.get(key)
    if (app) return app
    // In IPv6, a client has a /64 network.
    const network = ip.includes('.') ? ip : ip.split('::', 1).join().split(':', 4).join(':')
    return this.#network(network)
  }

  /** Returns the tenant of the health checks of an address. Clients behind one proxy must not delay those of the proxy. */
  ofHealthChecks(ip: string): Tenant {
    return this.#network(`health checks of ${ip}`)
  }

  #network(name: string): Tenant {
    const tenant = this.#networks.get(name) ?? new Tenant()
    this.#networks.set(name, tenant)
    return tenant
  }

  /** Records the app that a read has found for a caller. */
  knowApp(key: string, appId: string): void {
    if (this.#appOf.get(key)?.appId === appId) return
    const tenant = this.#apps.get(appId) ?? new Tenant(appId)
    this.#apps.set(appId, tenant)
    this.#appOf.set(key, tenant)
  }

  /** Forgets the app of a caller whose credentials a read has rejected. */
  forgetApp(key: string): void {
    this.#appOf.delete(key)
  }
}
