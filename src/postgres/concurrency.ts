import { DatabaseUnavailable } from './errors.ts'
import type { MemoryReservation } from './response-memory.ts'

export interface ConcurrencyOptions {
  /** Maximum number of reads in flight. */
  places: number
  /** Maximum number of large reads in flight. The other places are for small requests. */
  largePlaces: number
  /** Maximum number of waiting reads, for each of the two sizes. */
  queue: number
}

/** Limits the reads in flight. Further reads wait. If the queue is full, they are rejected at once. */
export interface ConcurrencyLimit {
  readonly waiting: number
  /**
   * Takes a place. The caller must call leave().
   * @param waitMs maximum wait
   * @throws DatabaseUnavailable if no place becomes free in time
   */
  enter(reservation: MemoryReservation | undefined, waitMs: number): Promise<void> | undefined
  leave(reservation: MemoryReservation | undefined): void
}

interface Waiter {
  reservation: MemoryReservation | undefined
  since: number
  timer: NodeJS.Timeout
  admit(): void
  reject(reason: string): void
}

/** Admits reads in the order of arrival. Large requests use only `largePlaces` of the places. */
export function createConcurrencyLimit(options: ConcurrencyOptions): ConcurrencyLimit {
  const { places, largePlaces, queue } = options
  const waiting = { small: [] as Waiter[], large: [] as Waiter[] }
  let inFlight = 0
  let largeInFlight = 0

  const count = (reservation: MemoryReservation | undefined, step: 1 | -1) => {
    inFlight += step
    if (reservation?.large) largeInFlight += step
  }
  const lineOf = (reservation: MemoryReservation | undefined) =>
    reservation?.large ? waiting.large : waiting.small
  const wait = (reservation: MemoryReservation | undefined, waitMs: number) =>
    new Promise<void>((resolve, fail) => {
      const line = lineOf(reservation)
      const reject = (reason: string) => fail(new DatabaseUnavailable(reason))
      const timer = setTimeout(() => {
        line.splice(line.indexOf(waiter), 1)
        reject('no database connection became free in time')
      }, waitMs)
      const waiter = { reservation, since: performance.now(), timer, admit: resolve, reject }
      line.push(waiter)
    })
  const next = (): Waiter | undefined => {
    const [small] = waiting.small
    const large = largeInFlight < largePlaces ? waiting.large[0] : undefined
    if (large && (!small || large.since < small.since)) return waiting.large.shift()
    return waiting.small.shift()
  }

  return {
    get waiting() {
      return waiting.small.length + waiting.large.length
    },
    enter(reservation, waitMs) {
      if (waitMs <= 0) throw new DatabaseUnavailable('no time is left for another read')
      const free = inFlight < places && (!reservation?.large || largeInFlight < largePlaces)
      if (!free && lineOf(reservation).length >= queue) {
        throw new DatabaseUnavailable('too many requests wait for the database')
      }
      if (!free) return wait(reservation, waitMs)
      count(reservation, 1)
      return undefined
    },
    leave(reservation) {
      count(reservation, -1)
      for (let waiter = next(); waiter; waiter = next()) {
        clearTimeout(waiter.timer)
        if (waiter.reservation?.ended) {
          waiter.reject('the client is gone')
          continue
        }
        count(waiter.reservation, 1)
        waiter.admit()
        return
      }
    },
  }
}
