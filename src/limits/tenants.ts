import { FifoMap, LruMap } from 'toad-cache'

/** An app, or the network of callers whose app is unknown. Tenants share the service fairly. Each limit has its own state of them. */
export class Tenant {
  /** Undefined for a network. */
  readonly appId: string | undefined

  constructor(appId?: string) {
    this.appId = appId
  }
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
