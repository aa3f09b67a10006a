import { Unavailable } from './errors.ts'

/** An app, or the client address of unconfirmed callers. Tenants share the service fairly. */
export class Tenant {
  /** Undefined for callers that the database has not confirmed: their reads use few places. */
  readonly appId: string | undefined
  /** Requests in flight. */
  requests = 0
  /** Bytes of responses in flight. */
  bytes = 0

  constructor(appId: string | undefined) {
    this.appId = appId
  }
}

/**
 * Returns true if a tenant may take more of a limited resource. A third of what it then has must stay
 * free, so a new tenant always finds room (dynamic thresholds of Choudhury and Hahne, 1998). One tenant has
 * at most three quarters; two have at most three sevenths each. A tenant that has nothing may take all that
 * is free.
 * @param has what the tenant has now
 * @param free what no tenant has now
 */
export function mayTake(more: number, has: number, free: number): boolean {
  return has === 0 ? more <= free : has + more <= 3 * (free - more)
}

/** A read that needs a place. */
export interface Entrant {
  tenant: Tenant
  /** True for a large read. */
  large?: boolean
  /** True if no client waits for the response any more. */
  ended?: boolean
}

export interface ConcurrencyOptions {
  /** Maximum number of reads in flight. */
  places: number
  /** Maximum number of large reads in flight. The other places are for small requests. */
  largePlaces: number
  /** Maximum number of waiting reads in each queue: small, large, and of unconfirmed callers. */
  queue: number
}

interface Waiter {
  entrant: Entrant
  since: number
  timer: NodeJS.Timeout
  admit(): void
  reject(reason: string): void
}

/** Part of the places that reads of unconfirmed callers may use at once. */
const UNCONFIRMED_SHARE = 0.1

/**
 * Limits the reads in flight. Large reads and those of unconfirmed callers use only a part of the places.
 * Further reads wait. In each queue, tenants take turns, so a tenant with few reads does not wait for
 * all reads of another one. If a queue is full, reads are rejected at once.
 */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyOptions
  readonly #small: Queue
  readonly #large: Queue
  readonly #unconfirmed: Queue
  #inFlight = 0

  constructor(options: ConcurrencyOptions) {
    this.#options = options
    this.#small = new Queue(options.places)
    this.#large = new Queue(options.largePlaces)
    this.#unconfirmed = new Queue(Math.ceil(options.places * UNCONFIRMED_SHARE))
  }

  get waiting(): number {
    return this.#small.length + this.#large.length + this.#unconfirmed.length
  }

  /**
   * Takes a place. The caller must call leave().
   * @param waitMs maximum wait
   * @throws Unavailable if no place becomes free in time
   */
  enter(entrant: Entrant, waitMs: number): Promise<void> | undefined {
    if (waitMs <= 0) throw new Unavailable('no time is left for another read')
    const queue = this.#queueOf(entrant)
    if (this.#inFlight < this.#options.places && queue.inFlight < queue.places) {
      this.#count(queue, 1)
      return undefined
    }
    if (queue.length >= this.#options.queue && !queue.makeRoom(entrant.tenant)) {
      throw new Unavailable('too many requests wait for the database')
    }
    return queue.wait(entrant, waitMs)
  }

  leave(entrant: Entrant): void {
    this.#count(this.#queueOf(entrant), -1)
    while (this.#inFlight < this.#options.places) {
      const waiter = this.#next()
      if (waiter === undefined) return
      if (waiter.entrant.ended) waiter.reject('the client is gone')
      else this.#admit(waiter)
    }
  }

  /** The oldest of the waiters whose turn it is in their queues. */
  #next(): Waiter | undefined {
    let oldest: Waiter | undefined
    for (const queue of [this.#small, this.#large, this.#unconfirmed]) {
      const first = queue.inFlight < queue.places ? queue.first() : undefined
      if (first && (oldest === undefined || first.since < oldest.since)) oldest = first
    }
    return oldest
  }

  #admit(waiter: Waiter): void {
    const queue = this.#queueOf(waiter.entrant)
    queue.take(waiter)
    this.#count(queue, 1)
    waiter.admit()
  }

  #queueOf({ tenant, large }: Entrant): Queue {
    if (tenant.appId === undefined) return this.#unconfirmed
    return large ? this.#large : this.#small
  }

  #count(queue: Queue, step: 1 | -1): void {
    this.#inFlight += step
    queue.inFlight += step
  }
}

/** Waiting reads by tenant. The tenant that is next in turn is first. */
class Queue {
  /** Maximum number of these reads in flight. */
  readonly places: number
  inFlight = 0
  length = 0
  readonly #waiting = new Map<Tenant, Waiter[]>()

  constructor(places: number) {
    this.places = places
  }

  /** @throws Unavailable after `waitMs` */
  wait(entrant: Entrant, waitMs: number): Promise<void> {
    return new Promise((admit, fail) => {
      const reject = (reason: string) => {
        this.#remove(waiter)
        fail(new Unavailable(reason))
      }
      const timer = setTimeout(reject, waitMs, 'no database connection became free in time')
      const waiter = { entrant, since: performance.now(), timer, admit, reject }
      const waiters = this.#waiting.get(entrant.tenant)
      if (waiters) waiters.push(waiter)
      else this.#waiting.set(entrant.tenant, [waiter])
      this.length += 1
    })
  }

  first(): Waiter | undefined {
    const [waiters] = this.#waiting.values()
    return waiters?.[0]
  }

  /** Removes a waiter that gets its turn. The other tenants come next. */
  take(waiter: Waiter): void {
    const { tenant } = waiter.entrant
    const others = this.#remove(waiter)
    if (others.length === 0) return
    this.#waiting.delete(tenant)
    this.#waiting.set(tenant, others)
  }

  /** Rejects the newest read of the tenant that has the most. @returns false if no other has more */
  makeRoom(tenant: Tenant): boolean {
    const own = this.#waiting.get(tenant) ?? []
    let most = own
    for (const waiters of this.#waiting.values()) if (waiters.length > most.length) most = waiters
    if (most.length <= own.length + 1) return false
    most.at(-1)?.reject('too many requests wait for the database')
    return true
  }

  /** @returns the other waiters of the tenant */
  #remove(waiter: Waiter): Waiter[] {
    clearTimeout(waiter.timer)
    const { tenant } = waiter.entrant
    const waiters = this.#waiting.get(tenant) ?? []
    waiters.splice(waiters.indexOf(waiter), 1)
    if (waiters.length === 0) this.#waiting.delete(tenant)
    this.length -= 1
    return waiters
  }
}
