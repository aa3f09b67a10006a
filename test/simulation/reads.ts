import pg from 'pg'
import type { Reader } from '../../src/postgres/reader.ts'
import type { RawRows } from '../../src/postgres/wire/query.ts'
import type { Link } from './world/link.ts'
import type { Network } from './world/network.ts'
import type { World } from './world/world.ts'

/** SQLSTATEs after which a read runs again: a lost plan, the end of its session, a conflict with the replay of a standby. */
export const MAY_RUN_AGAIN = /^(0A000|26000|42P05|57P01|57P02|25P03|XX001|40001|40P01)$/

/** One read, as the test sees it: what was asked for, what was sent, and how it ended. */
export interface ObservedRead {
  id: number
  title: string
  app: string
  reader: Reader
  rows: number
  /** SQLSTATE that it fails with by itself. */
  ownError: string | undefined
  isContinued: boolean
  server: 'primary' | 'replica'
  /** True if it uses the sessions for large reads. */
  isLarge: boolean
  askedAt: number
  /** Start of the time that it has. */
  startedAt: number
  /** The latest timeline that the service had moved to. */
  timeline: number
  /** Times at which it was sent, in order. */
  sends: Sent[]
  /** Time at which the test saw that its client is gone. */
  unwantedAt: number | undefined
  endedAt: number | undefined
  outcome: 'rows' | 'no room' | 'error' | undefined
  error: unknown
}

interface Sent {
  link: Link
  at: number
  /** False if it was sent without a prepared statement. */
  isNamed: boolean
  /** What arrived: `rows`, or an SQLSTATE. */
  result: string | undefined
  answeredAt: number | undefined
}

type Asked = Pick<
  ObservedRead,
  'title' | 'app' | 'reader' | 'rows' | 'ownError' | 'server' | 'isLarge' | 'timeline'
>

/** All reads of a run. */
export class Reads {
  readonly all: ObservedRead[] = []
  /** The read of some rows. */
  readonly ofRows = new WeakMap<RawRows, ObservedRead>()
  /** Reads that have not ended. */
  readonly open = new Set<ObservedRead>()
  /** Called when a read is asked for, before it is one of the open ones. */
  onAsk: (read: ObservedRead) => void = () => {}
  /** Called when a read is sent. The last element of its `sends` is this one. */
  onSend: (read: ObservedRead, sent: Sent) => void = () => {}
  /** Called when the answer of a read arrives. */
  onAnswer: (read: ObservedRead, sent: Sent) => void = () => {}
  /** Called when a read has ended. */
  onEnd: (read: ObservedRead) => void = () => {}
  readonly #world: World

  constructor(world: World, network: Network) {
    this.#world = world
    network.onReadSent = (id, link, isNamed) => {
      const read = this.all[id]
      if (read === undefined) return
      const sent = { link, at: world.now, isNamed, result: undefined, answeredAt: undefined }
      read.sends.push(sent)
      this.onSend(read, sent)
    }
    network.onAnswer = (id, link, result) => {
      const read = this.all[id]
      const sent = read?.sends.find((each) => each.link === link && each.result === undefined)
      if (read === undefined || sent === undefined) return
      sent.result = result
      sent.answeredAt = world.now
      this.onAnswer(read, sent)
    }
  }

  begin(asked: Asked): ObservedRead {
    const { reader } = asked
    const read: ObservedRead = {
      ...asked,
      id: this.all.length,
      isContinued: reader.hasBegun,
      askedAt: this.#world.now,
      startedAt: reader.startedAt,
      sends: [],
      unwantedAt: undefined,
      endedAt: undefined,
      outcome: undefined,
      error: undefined,
    }
    this.onAsk(read)
    this.all.push(read)
    this.open.add(read)
    this.#world.journal.record('asks', read.id, asked.title)
    return read
  }

  /** Waits for the end of a read. */
  async follow(
    read: ObservedRead,
    reading: Promise<RawRows | undefined>,
  ): Promise<RawRows | undefined> {
    try {
      const rows = await reading
      if (rows !== undefined) this.ofRows.set(rows, read)
      this.#end(read, rows === undefined ? 'no room' : 'rows')
      return rows
    } catch (error) {
      read.error = error
      this.#end(read, 'error')
      throw error
    }
  }

  #end(read: ObservedRead, outcome: NonNullable<ObservedRead['outcome']>): void {
    read.outcome = outcome
    read.endedAt = this.#world.now
    this.open.delete(read)
    this.#world.journal.record('ends', read.id, `${outcome} ${codeOf(read.error) ?? ''}`)
    this.onEnd(read)
  }
}

/** Returns the SQLSTATE of an error or of its cause. */
export function codeOf(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause)
    if (each instanceof pg.DatabaseError) return each.code
  return undefined
}
