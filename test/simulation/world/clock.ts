import { syncBuiltinESMExports } from 'node:module'
import { type Clock, install } from '@sinonjs/fake-timers'

interface Planned {
  at: number
  order: number
  action: () => void
}

/** Real one. The streams of Node.js use ticks and microtasks, which all run before it. */
const realImmediate = setImmediate
const drained = () => new Promise<void>((resolve) => void realImmediate(resolve))

/** Time at which a world begins, in ms: the code takes 0 for "never". */
const BEGINNING = 1_000

/**
 * Virtual time. It has the timers of the code under test, and the events of the simulated world. One of them runs at a time,
 * with all ticks and microtasks that follow from it.
 */
export class VirtualClock {
  readonly #timers: Clock
  readonly #planned: Planned[] = []
  /** Times for which the event loop has stopped. */
  readonly #stops: { at: number; ms: number }[] = []
  #orders = 0
  /** Called after each event. */
  onStep: () => void = () => {}

  constructor() {
    this.#timers = install({
      now: 0,
      toFake: [
        ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const),
        ...(['setImmediate', 'clearImmediate', 'Date', 'performance'] as const),
      ],
    })
    // `import { setTimeout } from 'node:timers/promises'` gets it too.
    syncBuiltinESMExports()
    this.#timers.tick(BEGINNING)
  }

  get now(): number {
    return this.#timers.now
  }

  /** Number of timers of the code under test. */
  get timers(): number {
    return this.#timers.countTimers()
  }

  after(ms: number, action: () => void): void {
    const planned = { at: this.now + Math.max(0, Math.round(ms)), order: this.#orders, action }
    this.#orders += 1
    this.#add(planned)
  }

  async wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.after(ms, resolve))
  }

  /** Runs until a time, or until nothing is left. */
  async runUntil(end: number): Promise<void> {
    for (;;) {
      await drained()
      this.onStep()
      const timerAt = this.#timers.timerHeap?.peek()?.callAt ?? Number.POSITIVE_INFINITY
      const eventAt = this.#planned[0]?.at ?? Number.POSITIVE_INFINITY
      if (Math.min(timerAt, eventAt) > end) break
      // As in Node.js, timers that are due come before the input of sockets.
      if (timerAt <= eventAt) {
        this.#timers.next()
      } else {
        if (eventAt > this.now) this.#timers.tick(eventAt - this.now)
        this.#take().action()
      }
    }
    if (end > this.now) this.#timers.tick(end - this.now)
  }

  /** Stops the event loop: what becomes due meanwhile runs late, timers first. */
  stop(ms: number): void {
    this.#stops.push({ at: this.now, ms })
    this.#timers.jump(ms)
  }

  /** Time for which the event loop has stopped since a time, in ms. */
  stoppedSince(at: number): number {
    let total = 0
    for (const stop of this.#stops) if (stop.at + stop.ms >= at) total += stop.ms
    return total
  }

  uninstall(): void {
    this.#timers.uninstall()
    syncBuiltinESMExports()
  }

  // A binary heap, by time and then by order.

  #add(planned: Planned): void {
    const heap = this.#planned
    let at = heap.length
    heap.push(planned)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(planned, heap[parent] as Planned)) break
      heap[at] = heap[parent] as Planned
      at = parent
    }
    heap[at] = planned
  }

  #take(): Planned {
    const heap = this.#planned
    const first = heap[0] as Planned
    const last = heap.pop() as Planned
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Planned, heap[child] as Planned))
        child += 1
      if (!isBefore(heap[child] as Planned, last)) break
      heap[at] = heap[child] as Planned
      at = child
    }
    heap[at] = last
    return first
  }
}

const isBefore = (one: Planned, other: Planned) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)
