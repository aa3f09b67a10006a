import { poolSizes } from '../../src/postgres/server.ts'
import { MAY_RUN_AGAIN, type ObservedRead, type Reads } from './reads.ts'
import { type Service, STATEMENT_MS } from './service.ts'
import type { World } from './world/world.ts'

/** Time after which a read counts as slow, and no other is sent behind it, in ms. */
const STALLED_MS = 250
/** Average number of reads in flight on a session for small reads. */
export const READS_PER_SESSION = 1.5
/** Time in which a read may run, in ms. */
const SILENT_MS = STATEMENT_MS + 1_000

type Sent = ObservedRead['sends'][number]

/** SQLSTATEs of a lost plan. */
const LOST_PLAN = /^(0A000|26000|42P05)$/

/** A read runs again only after its connection failed, or after PostgreSQL has refused to run it. */
export function isRepeatedOnlyWhereSafe(world: World, { id, sends }: ObservedRead): void {
  const name = 'a read is repeated only where that is safe'
  const before = sends.slice(0, -1)
  for (const { link, result } of before) {
    const mayRepeat = result === undefined ? !link.isOpen : MAY_RUN_AGAIN.test(result)
    if (!mayRepeat) world.violate(name, `read ${id} runs again after ${result} of ${link.id}`)
  }
  const others = before.filter(({ result }) => !LOST_PLAN.test(result ?? ''))
  if (others.length > 1) world.violate(name, `read ${id} was sent ${sends.length} times`)
}

/** A repeated read gets a session that has answered since the failure, or a new one. */
export function isRepeatedOnAnotherSession(world: World, { id, sends }: ObservedRead): void {
  const [first, second] = sends
  if (sends.length !== 2 || first === undefined || second === undefined) return
  if (first.result !== undefined || second.link.openedAt >= first.at) return
  // The server has said that it ends this session: it may be the only one, so the idle ones stay.
  if (first.link.isTerminated) return
  if (second.link.arrivedAt < first.at)
    world.violate('a repeated read gets a session that works', `read ${id} on ${second.link.id}`)
}

/** No read is sent behind one that takes long. */
export function isNotSentBehindASlowRead(world: World, read: ObservedRead, { link }: Sent): void {
  if (link.inFlight.length === 0 || isRefused(read)) return
  const ms = world.now - link.progressAt
  if (ms > STALLED_MS + world.clock.stoppedSince(link.progressAt))
    world.violate('no read is sent behind a slow one', `read ${read.id} after ${ms} ms`)
}

/** True if PostgreSQL has refused to run it on this session, which gets it again at once. */
const isRefused = ({ sends }: ObservedRead) => sends.at(-1)?.link === sends.at(-2)?.link

/** No read is sent for a client that has left. */
export function isSentForSomebody(world: World, read: ObservedRead): void {
  const { unwantedAt } = read
  if (unwantedAt === undefined || isRefused(read)) return
  if (world.now - unwantedAt > 100 + world.clock.stoppedSince(unwantedAt))
    world.violate('no read is sent for a client that has left', `read ${read.id}`)
}

/** Behind a pooler, and for large reads, a session has one read. */
export function isAlone(service: Service, read: ObservedRead, { link }: Sent): void {
  const { reads, settings, world } = service
  if (settings.pooler === 'none' && !read.isLarge) return
  // The end of an answer may arrive after its last row.
  const others = link.inFlight.filter((id) => reads.all[id]?.endedAt === undefined)
  if (others.length > 0 && !isRefused(read))
    world.violate('a large read is alone on its session', `read ${read.id} on ${link.id}`)
}

/** A read whose session has failed may have broken it, so it is repeated on a session alone. */
export function isRepeatedAlone(
  { reads, world }: Service,
  read: ObservedRead,
  { link }: Sent,
): void {
  const others = link.inFlight
    .map((id) => reads.all[id])
    .filter((other) => other !== undefined && other !== read && other.endedAt === undefined)
  const isBehind = others.some((other) => other !== undefined && hasMoved(other))
  if (isBehind || (hasMoved(read) && others.length > 0))
    world.violate('a repeated read is alone on its session', `read ${read.id} on ${link.id}`)
}

/** True if it was sent on several sessions. */
const hasMoved = ({ sends }: ObservedRead) => sends.some(({ link }) => link !== sends[0]?.link)

/** A session that has lost a plan gets no read that needs one. */
export function needsNoLostPlan(world: World, read: ObservedRead, { link, isNamed }: Sent): void {
  if (link.hasLostPlan && isNamed)
    world.violate('a session that lost a plan is not used', `read ${read.id} on ${link.id}`)
}

/** The sessions that a read may use: those of the primary or of a replica, for small reads or for large ones. */
const classOf = ({ server, isLarge }: ObservedRead) => `${server} ${isLarge ? 'large' : 'small'}`

/** Reads that are sent and have not ended, of one class of sessions. */
function* inFlightOf(reads: Reads, sessions: string): Generator<ObservedRead> {
  for (const read of reads.open)
    if (read.sends.at(-1)?.link.isOpen && classOf(read) === sessions) yield read
}

/** No app, and not all unknown callers together, have all sessions. */
export function leavesRoomForOthers(service: Service, read: ObservedRead): void {
  const { reads, network, settings, world } = service
  // A repeated read does not wait in the queue, nor do those that waited for a connection that was reset.
  if (read.sends.length > 1 || network.failedAt >= read.askedAt) return
  const { small, large } = poolSizes(settings.size)
  const sessions = read.isLarge ? large : small
  const isSingle = read.isLarge || settings.pooler !== 'none'
  const capacity = Math.ceil(sessions * (isSingle ? 1 : READS_PER_SESSION))
  let own = 0
  for (const other of inFlightOf(reads, classOf(read)))
    if (other.app === read.app && other.sends.length === 1 && other.askedAt > network.failedAt)
      own += 1
  const unknown = Math.max(1, Math.min(4, sessions - 1))
  const most = read.app === 'unknown' ? unknown : Math.max(1, Math.floor(0.75 * capacity))
  if (own > most)
    world.violate('an app leaves room for others', `${own} reads of ${read.app}, ${most} allowed`)
}

/** Which statements have failed by a lock, and since when. */
export class Locks {
  readonly #lockedAt = new Map<string, number>()

  /** Of a locked table, one read at a time waits for the lock. */
  oneReadTries({ network, reads, world }: Service, read: ObservedRead): void {
    const sessions = classOf(read)
    const lockedAt = this.#lockedAt.get(`${sessions} ${read.title}`)
    // Reads whose sessions failed, or that waited for one that was reset, are repeated all the same.
    const isRepeated = ({ askedAt, sends }: ObservedRead) =>
      sends.length > 1 || network.failedAt >= askedAt
    if (lockedAt === undefined || isRepeated(read)) return
    for (const other of inFlightOf(reads, sessions)) {
      const at = other.sends.at(-1)?.at ?? 0
      if (other === read || other.title !== read.title || isRepeated(other)) continue
      if (at > lockedAt)
        world.violate('one read at a time waits for a lock', `reads ${other.id} and ${read.id}`)
    }
  }

  note(read: ObservedRead, { link, result }: Sent): void {
    const key = `${classOf(read)} ${read.title}`
    if (result === '55P03') this.#lockedAt.set(key, this.#lockedAt.get(key) ?? link.progressAt)
    if (result === 'rows') this.#lockedAt.delete(key)
  }

  /** A read of a locked table is refused only while another one waits for a lock. */
  isRefusedBesideAnother({ reads, world }: Service, read: ObservedRead): void {
    const { error, server } = read
    if (!(error instanceof Error) || error.message !== 'a table of the statement is locked') return
    // A read of a replica ends for its request after a second without an answer, and may still wait for the lock.
    if (server === 'replica') return
    const mayWait = (other: ObservedRead) =>
      classOf(other) === classOf(read) && this.#lockedAt.has(`${classOf(other)} ${other.title}`)
    if (![...reads.open].some(mayWait))
      world.violate('a read is refused only while another one waits for a lock', `read ${read.id}`)
  }
}

/** After a failover, no read is sent to the host that was in use before. */
export function isSentToTheHostInUse(service: Service, read: ObservedRead, { link }: Sent): void {
  const { usedHost, world } = service
  if (read.server === 'replica' || usedHost === undefined || link.host === usedHost) return
  world.violate('a read is sent to the host in use', `read ${read.id} to ${link.host}`)
}

/** A read whose session failed before it could run is repeated, if it has time left. */
export function isRepeatedAfterAFailure({ network, world }: Service, read: ObservedRead): void {
  const { error, sends, startedAt, isContinued, reader } = read
  const [sent] = sends
  if (!(error instanceof Error) || error.name !== 'ServerFailed' || sent === undefined) return
  if (sends.length > 1 || reader.memory.isClosed || sent.result !== undefined) return
  // It was repeated before it was sent: the connection for which it waited was reset.
  if (network.failures.some((at) => at >= read.askedAt && at <= sent.at)) return
  const stopped = world.clock.stoppedSince(sent.at)
  const hasTime = isContinued || world.now + stopped < startedAt + 2 * STATEMENT_MS
  const wasLate = world.now - sent.at >= SILENT_MS - 50
  if (hasTime && !wasLate && !error.message.startsWith('no connection'))
    world.violate('a read is repeated after a failure', `read ${read.id}: ${error.message}`)
}

/** A block of a response that has begun waits for a session as long as it takes. */
export function waitsIfItHasBegun(world: World, { error, id, isContinued }: ObservedRead): void {
  if (isContinued && error instanceof Error && error.message.includes('became free in time'))
    world.violate('an export is never cut by waiting', `read ${id}: ${error.message}`)
}
