import type { Link } from './link.ts'
import type { ServerError } from './messages.ts'
import type { World } from './world.ts'

/** Time between two changes of the data, in ms. */
const CHANGE_MS = 400

export interface HostOptions {
  name: string
  isStandby: boolean
  /** How PgBouncer in transaction mode is in front of it. */
  pooler: 'none' | 'keeps plans' | 'forgets plans'
  /** False if the role may not read the history of the server. */
  readsHistory: boolean
}

/** A session of a server (backend.ts). */
export interface Session {
  readonly link: Link
  /** Reports an error that ends the session. */
  terminate(code: string, message: string): void
  /** Ends without a word. */
  vanish(how: 'end' | 'reset'): void
  reportRole(): void
}

/** A server: its state, which faults change, and its sessions. */
export class Host {
  readonly options: HostOptions
  readonly world: World
  readonly backends = new Set<Session>()
  isStandby: boolean
  isUp = true
  /** Each promotion begins a new timeline. */
  timeline = 1
  startedAt: number
  refuses = false
  ignoresConnections = false
  isStarting = false
  connectMs = 0
  /** Factor of the times of statements. */
  slowness = 1
  lagMs = 0
  sendsNotices = false
  maxBackends = Number.POSITIVE_INFINITY
  user: string
  /** Tables that are locked, and until when. */
  readonly lockedUntil = new Map<string, number>()
  /** Error of a part of the statements. */
  failures: { error: ServerError; rate: number } | undefined
  /** SQLSTATE of each statement that is parsed. */
  parseError: string | undefined
  /** Number of changes of the schema that made plans unusable. */
  schemaChanges = 0
  #frozen: (() => void)[] | undefined

  constructor(world: World, options: HostOptions, user: string) {
    this.world = world
    this.options = options
    this.isStandby = options.isStandby
    this.user = user
    this.startedAt = world.now
  }

  get name(): string {
    return this.options.name
  }

  /** Version of the data that a statement sees now. */
  get version(): string {
    const seenAt = this.world.now - (this.isStandby ? this.lagMs : 0)
    return `${this.timeline}.${Math.floor(seenAt / CHANGE_MS)}`
  }

  /** Runs now, or when the process continues after SIGSTOP. */
  whenRunning(action: () => void): void {
    if (this.#frozen) this.#frozen.push(action)
    else action()
  }

  freeze(): void {
    this.#frozen ??= []
  }

  thaw(): void {
    const actions = this.#frozen ?? []
    this.#frozen = undefined
    for (const action of actions) action()
  }

  /** Ends all sessions, as an administrator does, and refuses others until start(). */
  shutDown(): void {
    this.isStarting = true
    for (const backend of this.backends)
      backend.terminate('57P01', 'terminating connection due to administrator command')
  }

  crash(): void {
    this.isUp = false
    for (const backend of this.backends) backend.vanish('reset')
  }

  start(): void {
    if (this.isUp && !this.isStarting) return
    this.isUp = true
    this.isStarting = false
    this.startedAt = this.world.now
  }

  promote(timeline: number): void {
    if (!this.isStandby) return
    this.isStandby = false
    this.timeline = timeline
    for (const backend of this.backends) backend.reportRole()
  }

  /** Follows the primary of this timeline from now on. */
  demote(timeline: number): void {
    this.timeline = timeline
    if (this.isStandby) return
    this.isStandby = true
    for (const backend of this.backends) backend.vanish('end')
  }
}
