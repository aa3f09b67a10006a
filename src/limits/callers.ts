import { FifoMap, LruMap } from 'toad-cache'
import { Tenant } from './requests.ts'

/** Maximum of callers that an instance remembers, and of apps and networks. It drops the oldest. */
const MAX_CALLERS = 50_000
const MAX_TENANTS = 10_000

/**
 * Remembers the app that the last statement of each caller found. The caller uses the limits of this app. All other
 * callers use those of their network. The memory grants no access: each statement authenticates its caller.
 */
export class Callers {
  readonly #appOf = new FifoMap<Tenant>(MAX_CALLERS)
  readonly #apps = new LruMap<Tenant>(MAX_TENANTS)
  readonly #networks = new LruMap<Tenant>(MAX_TENANTS)

  /** @param key identity of the credentials */
  tenantOf(key: string, ip: string): Tenant {
    return this.#appOf.get(key) ?? this.tenantOfAddress(ip)
  }

  /** Returns the tenant of an address. In IPv6, a client has a /64 network. */
  tenantOfAddress(ip: string): Tenant {
    const network = ip.includes('.') ? ip : ip.split('::', 1).join().split(':', 4).join(':')
    const tenant = this.#networks.get(network) ?? new Tenant()
    this.#networks.set(network, tenant)
    return tenant
  }

  learn(key: string, appId: string): void {
    if (this.#appOf.get(key)?.appId === appId) return
    const tenant = this.#apps.get(appId) ?? new Tenant(appId)
    this.#apps.set(appId, tenant)
    this.#appOf.set(key, tenant)
  }

  forget(key: string): void {
    this.#appOf.delete(key)
  }
}
