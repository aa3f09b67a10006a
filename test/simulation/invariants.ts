import pg from 'pg'
import { Unavailable } from '../../src/limits/unavailable.ts'
import type { RawRows } from '../../src/postgres/wire/query.ts'
import { ProblemError } from '../../src/schemas/problem.ts'
import { codeOf, MAY_RUN_AGAIN, type ObservedRead } from './reads.ts'
import { type Service, STATEMENT_MS } from './service.ts'
import type { World } from './world/world.ts'

/** Time in which a read may run, after the wait for a session, in ms: STATEMENT_MS and a second. */
const SILENT_MS = STATEMENT_MS + 1_000
/** Overdue reads end at the next check of their pool, in ms. */
const CHECK_MS = 100
/** Longest delay of a packet of the simulated network, in ms. */
const NETWORK_MS = 350

/** Its rows are those of its own parameters, in order, all of them, and of one snapshot. */
export function rowsAreThoseOfTheRead(service: Service, read: ObservedRead, rows: RawRows): void {
  const { world } = service
  const name = 'rows are those of the read, in order and of one snapshot'
  let expected: number | undefined
  let version: string | undefined
  for (const fields of fieldsOf(rows)) {
    const [id, n, rowVersion] = fields
    comesFromAPrimary(service, fields)
    expected ??= Number(n)
    version ??= rowVersion
    if (Number(id) !== read.id || Number(n) !== expected || rowVersion !== version) {
      world.violate(
        name,
        `read ${read.id} got ${id} ${n} ${rowVersion}, not ${expected} ${version}`,
      )
      return
    }
    expected += 1
  }
  if (version !== undefined) neverGoesBack(service, read, Number(version.split('.')[0]))
  if ((expected ?? 0) !== read.rows && read.rows > 1)
    world.violate(name, `read ${read.id} got ${expected ?? 0} of ${read.rows} rows`)
}

function* fieldsOf(rows: RawRows): Generator<string[]> {
  for (const block of rows.takeBlocks()) {
    for (let at = 0; at < block.length; ) {
      const end = at + block.readInt32BE(at)
      const fields: string[] = []
      for (let field = at + 6; field < end; ) {
        const size = block.readInt32BE(field)
        fields.push(block.toString('utf8', field + 4, field + 4 + Math.max(0, size)))
        field += 4 + Math.max(0, size)
      }
      yield fields
      at = end
    }
  }
}

/** The primary is never a standby. Behind a pooler, only a query can tell. */
export function comesFromAPrimary(
  { settings, world }: Service,
  fields: readonly (string | null)[] = [],
): void {
  const [id, , , server, role] = fields
  if (settings.pooler === 'none' && server !== 'replica' && role === 'standby')
    world.violate('the primary is never a standby', `read ${id}`)
}

/** The memory of a response belongs to it until it is sent. */
export function bodyIsUntouched(world: World, body: Buffer, mark: number): void {
  if (!body.equals(Buffer.alloc(body.length, mark)))
    world.violate('nobody else writes into a response', `a byte of ${mark} has changed`)
}

/** A read ends by its due time: at its end, and while it is open. */
export function endsInTime(world: World, read: ObservedRead): void {
  const stopped = world.clock.stoppedSince(read.askedAt)
  const last = read.sends.at(-1)?.at
  const dueAt = read.isContinued
    ? (last ?? world.now) + STATEMENT_MS + SILENT_MS
    : read.startedAt + STATEMENT_MS + SILENT_MS
  const late = (read.endedAt ?? world.now) - dueAt - CHECK_MS - stopped
  if (late > 0)
    world.violate('each read ends by its due time', `read ${read.id} is ${late} ms late`)
}

/** A read ends with its answer, unless the answer is an error after which it may run again. */
export function endsWithItsAnswer(world: World, read: ObservedRead): void {
  const { link, result, answeredAt = world.now } = read.sends.at(-1) ?? {}
  if (result === undefined || link?.isTerminated) return
  if (world.now > answeredAt && !MAY_RUN_AGAIN.test(result))
    world.violate('a read ends with its answer', `read ${read.id}, ${result}`)
}

/** A read fails with an error that the service knows: its own, or one of the server's state. */
export function failsWithAKnownError(world: World, read: ObservedRead): void {
  const { error, id, ownError } = read
  const isKnown =
    error instanceof Unavailable ||
    error instanceof ProblemError ||
    error instanceof pg.DatabaseError
  if (!isKnown) world.violate('a read fails with a known error', `read ${id}: ${error}`)
  if (codeOf(error) === '22P02' && ownError !== '22P02')
    world.violate('a read gets no error of another one', `read ${id}: ${error}`)
}

/** No more sessions than allowed. */
export function hasNoMoreSessionsThanAllowed({ db, settings, network, world }: Service): void {
  const { primary, replicas } = db.state()
  for (const { connections, inUse } of [primary, ...replicas]) {
    if (connections > settings.size || inUse > connections)
      world.violate('no more sessions than allowed', `${connections} sessions, ${inUse} in use`)
  }
  const pooled = [primary, ...replicas].reduce((sum, { connections }) => sum + connections, 0)
  if (pooled > network.links.length)
    world.violate('a pool has only open sessions', `${pooled} of ${network.links.length} sockets`)
  for (const host of network.hosts) {
    const used = network.linksTo(host).filter(({ isUsed }) => isUsed)
    if (used.length > settings.size)
      world.violate('no more sessions than allowed', `${used.length} on ${host.name}`)
  }
}

/** Responses take no more memory than allowed, beside the bodies, which take what their rows need. */
export function takesNoMoreMemoryThanAllowed({ limits, open, world }: Service): void {
  const { used, limit } = limits.memory
  const bodies = open * 8_192
  if (used > limit + bodies || used < 0)
    world.violate('no more memory than allowed', `${used} of ${limit} bytes`)
}

/** A large read whose client has left gives its session back. */
export function endsWhenNobodyWaits(world: World, read: ObservedRead): void {
  const { reader, sends, isLarge } = read
  if (!reader.memory.isClosed) return
  read.unwantedAt ??= world.now
  const ms = world.now - read.unwantedAt - world.clock.stoppedSince(read.unwantedAt)
  if (ms > 2 * CHECK_MS && (isLarge || sends.length === 0))
    world.violate('a read that nobody waits for ends', `read ${read.id} goes on for ${ms} ms`)
}

/** In a quiet world, the sockets of the service are the sessions of its pools, and the servers have the same. */
export function hasLostNoSession({ db, network, world }: Service): void {
  const { primary, replicas } = db.state()
  const pooled = [primary, ...replicas].reduce((sum, { connections }) => sum + connections, 0)
  const sockets = network.links.length
  const sessions = network.hosts.flatMap(({ backends }) => [...backends])
  const backends = sessions.filter(({ link }) => !link.isSilent).length
  const silent = network.links.filter(({ isSilent }) => isSilent).length
  if (sockets !== pooled || backends + silent !== pooled)
    world.violate(
      'no session is lost',
      `${pooled} in the pools, ${sockets} sockets, ${backends} at the servers, ${silent} silent`,
    )
}

/** After the last request, nothing that requests take is in use. */
export function returnsAllThatItTook({ limits, db, world }: Service): void {
  const name = 'memory, permits and reads return to zero'
  const { primary, replicas } = db.state()
  const found = {
    memory: limits.memory.used,
    requests: limits.requests.inFlight,
    rejections: limits.rejections.waiting,
    waiting: [primary, ...replicas].reduce((sum, each) => sum + each.waiting, 0),
    inUse: [primary, ...replicas].reduce((sum, each) => sum + each.inUse, 0),
  }
  for (const [what, number] of Object.entries(found))
    if (number !== 0) world.violate(name, `${what}: ${number}`)
}

/** After close(), no socket and no timer is left. */
export function leavesNothingOpen({ network, world }: Service): void {
  const name = 'no socket and no timer is left'
  if (network.links.length > 0) world.violate(name, `${network.links.length} sockets`)
  if (world.clock.timers > 0) world.violate(name, `${world.clock.timers} timers`)
}

/** After the service has moved to a newer primary, no read returns what an older one has, if its role may read their history. */
function neverGoesBack({ settings, world }: Service, read: ObservedRead, timeline: number): void {
  if (settings.readsHistory && timeline < read.timeline)
    world.violate(
      'no read returns to a superseded primary',
      `read ${read.id} has timeline ${timeline}, after a move to ${read.timeline}`,
    )
}

/** A health check takes less than a second, also while nothing responds. */
export function checksInTime(world: World, startedAt: number): void {
  const late = world.now - startedAt - 1_000 - world.clock.stoppedSince(startedAt) - NETWORK_MS
  if (late > 0) world.violate('a health check takes less than a second', `${late} ms late`)
}
