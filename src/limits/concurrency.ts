import type { ReadContext } from './context.ts'
import { TableLocked, Unavailable } from './errors.ts'
import type { Tenant } from './requests.ts'

export interface ConcurrencyOptions {
  places: number
  /** Maximum number of large reads in flight. The other places are for small requests. */
  largePlaces: number
  /** Maximum number of waiting reads in each queue: small and large. */
  queue: number
}

interface Waiter {
  context: ReadContext
  since: number
  timer: NodeJS.Timeout
  admit(): void
  reject(reason: string): void
}

/** Most reads in flight of callers whose app is unknown. A flood of unknown tokens uses no other places. */
const UNKNOWN_PLACES = 4

/**
 * Limits the reads in flight. Large reads and those of unknown callers use only a part of the places. Further reads
 * wait. In each queue, tenants take turns, so a tenant with few reads does not wait for all reads of another one. If a
 * queue is full, reads are rejected at once.
 */
export class ConcurrencyLimit {
  readonly #options: ConcurrencyOptions
  readonly #small: Queue
  readonly #large: Queue
  readonly #unknown: Queue
  #inFlight = 0

  constructor(options: ConcurrencyOptions) {
    this.#options = options
    this.#small = new Queue(options.places)
    this.#large = new Queue(options.largePlaces)
    this.#unknown = new Queue(Math.min(UNKNOWN_PLACES, Math.ceil(options.places / 2)))
  }

  get waiting(): number {
    return this.#small.length + this.#large.length + this.#unknown.length
  }

  /**
   * Takes a place. The caller must call leave().
   * @param waitMs maximum wait
   * @throws Unavailable if no place becomes free in time
   */
  enter(context: ReadContext, large: boolean, waitMs: number): Promise<void> | undefined {
    if (waitMs <= 0) throw new Unavailable('no time is left for another read')
    const queue = this.#queueOf(context, large)
    if (this.#inFlight < this.#options.places && queue.inFlight < queue.places) {
      this.#inFlight += 1
      queue.inFlight += 1
      return undefined
    }
    if (queue.length >= this.#options.queue && !queue.makeRoom(context.tenant)) {
      throw new Unavailable('too many requests wait for the database')
    }
    return queue.wait(context, waitMs)
  }

  leave(context: ReadContext, large: boolean): void {
    this.#inFlight -= 1
    this.#queueOf(context, large).inFlight -= 1
    if (this.waiting > 0) this.#admitWaiting()
  }

  #queueOf({ tenant }: ReadContext, large: boolean): Queue {
    if (tenant.appId === undefined) return this.#unknown
    return large ? this.#large : this.#small
  }

  #admitWaiting(): void {
    while (this.#inFlight < this.#options.places) {
      let queue = this.#small
      for (const other of [this.#large, this.#unknown]) {
        const { since = Number.POSITIVE_INFINITY } = queue.next() ?? {}
        if ((other.next()?.since ?? Number.POSITIVE_INFINITY) < since) queue = other
      }
      const waiter = queue.next()
      if (waiter === undefined) return
      if (waiter.context.ended) waiter.reject('the client is gone')
      else {
        queue.take(waiter)
        this.#inFlight += 1
        queue.inFlight += 1
        waiter.admit()
      }
    }
  }
}

/** Waiting reads by tenant. The tenant that is next in turn is first. */
class Queue {
  readonly places: number
  inFlight = 0
  length = 0
  readonly #waiting = new Map<Tenant, Waiter[]>()

  constructor(places: number) {
    this.places = places
  }

  wait(context: ReadContext, waitMs: number): Promise<void> {
    return new Promise((admit, fail) => {
      const reject = (reason: string) => {
        this.#remove(waiter)
        fail(new Unavailable(reason))
      }
      const timer = setTimeout(reject, waitMs, 'no database connection became free in time')
      const waiter = { context, since: performance.now(), timer, admit, reject }
      const waiters = this.#waiting.get(context.tenant)
      if (waiters) waiters.push(waiter)
      else this.#waiting.set(context.tenant, [waiter])
      this.length += 1
    })
  }

  next(): Waiter | undefined {
    if (this.inFlight >= this.places) return undefined
    const [waiters] = this.#waiting.values()
    return waiters?.[0]
  }

  /** Removes a waiter that gets its turn. The other tenants come next. */
  take(waiter: Waiter): void {
    const { tenant } = waiter.context
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

  #remove(waiter: Waiter): Waiter[] {
    clearTimeout(waiter.timer)
    const { tenant } = waiter.context
    const waiters = this.#waiting.get(tenant) ?? []
    waiters.splice(waiters.indexOf(waiter), 1)
    if (waiters.length === 0) this.#waiting.delete(tenant)
    this.length -= 1
    return waiters
  }
}

/**
 * Rejects reads of locked tables at once, so that they do not occupy all connections. One read at a time is
 * the trial: it waits for its lock on a connection without other reads. If it succeeds, the rejection ends.
 */
export class LockBreaker {
  /** Statements whose tables were locked at their last read. */
  readonly locked = new Set<string>()
  #trying = false

  /** Begins the trial of a locked statement. The caller must call end(). @throws TableLocked during a trial */
  begin(): void {
    if (this.#trying) throw new TableLocked('a table of the statement is locked')
    this.#trying = true
  }

  end(): void {
    this.#trying = false
  }
}
