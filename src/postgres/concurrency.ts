import { DatabaseUnavailable } from './errors.ts'
import type { Holding } from './response-memory.ts'

export interface AdmissionOptions {
  /** How many may be inside at once. */
  places: number
  /** How many of them may be heavy requests, so that a light one finds a place soon. */
  heavyPlaces: number
  /** How many of each kind may wait. */
  queue: number
}

/** Who may use the database now, who waits, and who is sent away at once because too many wait. */
export interface Admission {
  readonly waiting: number
  /**
   * @param waitMs how long it may take
   * @throws DatabaseUnavailable when there is no place in time; else leave() has to follow
   */
  enter(holding: Holding | undefined, waitMs: number): Promise<void> | undefined
  leave(holding: Holding | undefined): void
}

interface Waiter {
  holding: Holding | undefined
  since: number
  timer: NodeJS.Timeout
  admit(): void
  refuse(reason: string): void
}

/** Places are given in the order of arrival, but for the heavy ones, who share some of them. */
export function createAdmission(options: AdmissionOptions): Admission {
  const { places, heavyPlaces, queue } = options
  const waiting = { light: [] as Waiter[], heavy: [] as Waiter[] }
  let inside = 0
  let heavyInside = 0

  const count = (holding: Holding | undefined, step: 1 | -1) => {
    inside += step
    if (holding?.heavy) heavyInside += step
  }
  const line = (holding: Holding | undefined) => (holding?.heavy ? waiting.heavy : waiting.light)
  const wait = (holding: Holding | undefined, waitMs: number) =>
    new Promise<void>((resolve, reject) => {
      const refuse = (reason: string) => reject(new DatabaseUnavailable(reason))
      const timer = setTimeout(() => {
        line(holding).splice(line(holding).indexOf(waiter), 1)
        refuse('no database connection became free in time')
      }, waitMs)
      const waiter = { holding, since: performance.now(), timer, admit: resolve, refuse }
      line(holding).push(waiter)
    })
  const next = (): Waiter | undefined => {
    const [light] = waiting.light
    const heavy = heavyInside < heavyPlaces ? waiting.heavy[0] : undefined
    if (heavy && (!light || heavy.since < light.since)) return waiting.heavy.shift()
    return waiting.light.shift()
  }

  return {
    get waiting() {
      return waiting.light.length + waiting.heavy.length
    },
    enter(holding, waitMs) {
      if (waitMs <= 0) throw new DatabaseUnavailable('no time is left for one more read')
      const open = inside < places && (!holding?.heavy || heavyInside < heavyPlaces)
      if (!open && line(holding).length >= queue) {
        throw new DatabaseUnavailable('too many requests wait for the database')
      }
      if (!open) return wait(holding, waitMs)
      count(holding, 1)
      return undefined
    },
    leave(holding) {
      count(holding, -1)
      for (let waiter = next(); waiter; waiter = next()) {
        clearTimeout(waiter.timer)
        if (waiter.holding?.over) {
          waiter.refuse('the client is gone')
          continue
        }
        count(waiter.holding, 1)
        waiter.admit()
        return
      }
    },
  }
}
