import { chance } from './chance.ts'
import { VirtualClock } from './clock.ts'
import { Journal } from './journal.ts'

/** Limits of time of the role, which the startup options of a connection repeat. */
export interface WorldOptions {
  seed: number
  statement_timeout: number
  lock_timeout: number
  /** True to keep the lines of the journal. */
  keepsLines: boolean
}

/** A promise of the code that a run has shown to be broken. */
export interface Violation {
  invariant: string
  detail: string
  at: number
}

/** What network and servers share: time, chance, and the record of what happens. */
export class World {
  readonly options: WorldOptions
  readonly clock: VirtualClock
  readonly journal: Journal
  readonly violations: Violation[] = []
  /** True while the network cuts each answer into pieces. */
  cutsPackets = false
  readonly #pooledPlans = new Map<string, Map<string, { text: string; schemaChanges: number }>>()

  constructor(options: WorldOptions) {
    this.options = options
    this.clock = new VirtualClock()
    this.journal = new Journal(() => this.clock.now, options.keepsLines)
  }

  get now(): number {
    return this.clock.now
  }

  /** Returns a number from 0 to 1, without 1. */
  chance(...purpose: (string | number)[]): number {
    return chance(this.options.seed, ...purpose)
  }

  violate(invariant: string, detail: string): void {
    if (this.violations.length < 20) this.violations.push({ invariant, detail, at: this.now })
    this.journal.record('violates', invariant, detail)
  }

  /** Statements that a connection of PgBouncer to a server has prepared, for whichever client. */
  pooledPlans(
    host: string,
    connection: number,
  ): Map<string, { text: string; schemaChanges: number }> {
    const key = `${host} ${connection}`
    const plans = this.#pooledPlans.get(key) ?? new Map()
    this.#pooledPlans.set(key, plans)
    return plans
  }
}
