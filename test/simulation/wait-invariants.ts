import { poolSizes } from '../../src/postgres/server.ts'
import type { ObservedRead } from './reads.ts'
import { READS_PER_SESSION } from './send-invariants.ts'
import type { Service } from './service.ts'
import type { Link } from './world/link.ts'

/** Time in which a read that may run is sent, in ms. The service sends what waits after each event. */
const SEND_MS = 5
/**
 * Most turns that an app which came later may have had more than an app that waits. Each of the two may be one turn beside the
 * order of all apps, and of two equal ones, either may be first.
 */
const MOST_MORE = 3

interface Wait {
  /** Apps that waited before it. */
  earlier: Set<string>
  /** Turns that each app which came later has had, without those that its own app had meanwhile. */
  more: Map<string, number>
}

/** Small reads of known apps that wait for a session of the primary. */
export class Waits {
  readonly #service: Service
  readonly #waits = new Map<ObservedRead, Wait>()

  constructor(service: Service) {
    this.#service = service
  }

  asked(read: ObservedRead): void {
    if (!isCounted(read)) return
    this.#waits.set(read, { earlier: this.#waitingApps(), more: new Map() })
  }

  /** An app without a read in flight waits no longer than its turn. */
  sent(read: ObservedRead): void {
    const { network } = this.#service
    this.#waits.delete(read)
    if (!isCounted(read)) return
    // A repeated read takes no turn, and a block of a response that has begun may go first.
    const isRepeated = read.sends.length > 1 || network.failedAt >= read.askedAt
    const takesTurn = !isRepeated && !read.isContinued
    const apps = this.#waitingApps()
    const active = this.#activeApps()
    for (const [waiting, wait] of this.#waits) {
      if (waiting.app === read.app) hadTurn(wait, apps)
      else if (takesTurn && !active.has(waiting.app)) this.#passed(waiting, wait, read.app)
    }
  }

  #waitingApps(): Set<string> {
    return new Set([...this.#waits.keys()].map(({ app }) => app))
  }

  /** Counts a turn of another app, while an app waits that has no read in flight. */
  #passed(waiting: ObservedRead, { earlier, more }: Wait, app: string): void {
    if (earlier.has(app)) return
    const turns = add(more, app, 1)
    if (turns <= MOST_MORE || waiting.reader.memory.isClosed) return
    const detail = `read ${waiting.id} of ${waiting.app}, ${turns} more of ${app}`
    this.#service.world.violate('an app waits no longer than its turn', detail)
  }

  ended(read: ObservedRead): void {
    this.#waits.delete(read)
  }

  /** With capacity and an idle session left, an app without a read in flight does not wait. */
  noneWaitsBesideAnIdleSession(): void {
    const { settings, world } = this.#service
    // Behind a pooler, the sessions for large reads look like the others.
    if (settings.pooler !== 'none' || this.#waits.size === 0) return
    const sessions = this.#sessions()
    const idle = sessions.find((link) => this.#isIdle(link))
    const inFlight = sessions.reduce((sum, link) => sum + link.inFlight.length, 0)
    const capacity = READS_PER_SESSION * poolSizes(settings.size).small
    if (idle === undefined || inFlight >= capacity) return
    const active = this.#activeApps()
    for (const read of this.#waits.keys()) {
      const ms = world.now - read.askedAt - world.clock.stoppedSince(read.askedAt)
      if (ms < SEND_MS || read.reader.memory.isClosed || active.has(read.app)) continue
      const detail = `read ${read.id} of ${read.app}, session ${idle.id}, ${inFlight} in flight`
      world.violate('no read waits while a session is idle', detail)
    }
  }

  /** Sessions of the primary for small reads; behind a pooler, all sessions of the primary. */
  #sessions(): Link[] {
    const { links } = this.#service.network
    return links.filter(({ host, isLarge }) => host !== 'replica' && !isLarge)
  }

  /** Apps with a read in flight, also one that has ended for its client. */
  #activeApps(): Set<string | undefined> {
    const { reads } = this.#service
    const ids = this.#sessions().flatMap(({ inFlight }) => inFlight)
    return new Set(ids.map((id) => reads.all[id]?.app))
  }

  #isIdle(link: Link): boolean {
    const { inFlight, isUsed, isSilent, isTerminated, hasLostPlan } = link
    const isUsable = isUsed && !isSilent && !isTerminated && !hasLostPlan
    const idleMs = this.#service.world.now - link.progressAt
    return isUsable && inFlight.length === 0 && idleMs >= SEND_MS
  }
}

const isCounted = ({ app, server, isLarge }: ObservedRead) =>
  app !== 'unknown' && server === 'primary' && !isLarge

/** Counts a turn of the own app. It is none before those of an app that does not wait. */
function hadTurn({ more }: Wait, waitingApps: Set<string>): void {
  for (const [app, turns] of more) if (turns > 0 && !waitingApps.has(app)) add(more, app, -1)
  for (const app of waitingApps) add(more, app, -1)
}

function add(counts: Map<string, number>, app: string, more: number): number {
  const sum = (counts.get(app) ?? 0) + more
  counts.set(app, sum)
  return sum
}
