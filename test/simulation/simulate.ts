import {
  checksInTime,
  endsInTime,
  endsWhenNobodyWaits,
  endsWithItsAnswer,
  failsWithAKnownError,
  hasLostNoSession,
  hasNoMoreSessionsThanAllowed,
  leavesNothingOpen,
  returnsAllThatItTook,
  takesNoMoreMemoryThanAllowed,
} from './invariants.ts'
import { type PlannedRequest, runRequest } from './requests.ts'
import { BUSY_MS, type Burst, type RequestKind, type Schedule } from './schedule.ts'
import {
  isAlone,
  isNotSentBehindASlowRead,
  isRepeatedAfterAFailure,
  isRepeatedAlone,
  isRepeatedOnAnotherSession,
  isRepeatedOnlyWhereSafe,
  isSentForSomebody,
  isSentToTheHostInUse,
  Locks,
  leavesRoomForOthers,
  needsNoLostPlan,
  waitsIfItHasBegun,
} from './send-invariants.ts'
import { FIRST_USER, Service, STATEMENT_MS } from './service.ts'
import { Waits } from './wait-invariants.ts'
import { faultOf } from './world/faults.ts'
import { Host } from './world/host.ts'
import type { Journal } from './world/journal.ts'
import { Network } from './world/network.ts'
import { type Violation, World } from './world/world.ts'

/** What a run has shown. */
export interface Run {
  violations: readonly Violation[]
  journal: Journal
  reads: number
  virtualMs: number
}

const KINDS: RequestKind[] = ['page', 'large page', 'deep page', 'orders', 'export']
/**
 * Rounds of requests after the faults, before all must succeed: the read that finds a silent session fails, and a replica that
 * failed is tried by one read in five seconds.
 */
const RECOVERY_ROUNDS = 5
const ROUND_MS = 3_000
/** Time in which a request then ends, in ms: a replica may still have a silent session, and delays a read by a second. */
const USUAL_MS = 2_000
/** Time in which all requests end, whatever happens, in ms. */
const END_MS = 120_000

/** Runs a schedule: its requests and faults, the time after them, and the end of the service. */
export async function simulate(schedule: Schedule, keepsLines = false): Promise<Run> {
  const world = new World({
    seed: schedule.seed,
    statement_timeout: STATEMENT_MS,
    lock_timeout: STATEMENT_MS / 5,
    keepsLines,
  })
  const onRejection = (reason: unknown) => world.violate('each error has a reader', `${reason}`)
  process.on('unhandledRejection', onRejection)
  process.on('uncaughtException', onRejection)
  try {
    await runAll(world, schedule)
  } finally {
    process.off('unhandledRejection', onRejection)
    process.off('uncaughtException', onRejection)
    world.clock.uninstall()
  }
  const { violations, journal, now } = world
  return { violations, journal, reads: journal.counts.get('asks') ?? 0, virtualMs: now }
}

async function runAll(world: World, schedule: Schedule): Promise<void> {
  const network = new Network(world)
  addHosts(world, network, schedule)
  const service = new Service(world, network, schedule.settings)
  watch(service)
  plan(service, schedule)
  await world.clock.runUntil(world.now + BUSY_MS)
  const lastMs = Math.max(0, ...schedule.faults.map(({ at, lastsMs }) => at + lastsMs - BUSY_MS))
  await world.clock.runUntil(world.now + lastMs)
  heal(network)
  await recover(service)
  await end(service)
}

function addHosts(world: World, network: Network, { settings }: Schedule): void {
  const { pooler, readsHistory, hosts, hasReplica } = settings
  const add = (name: string, isStandby: boolean) =>
    network.hosts.push(new Host(world, { name, isStandby, pooler, readsHistory }, FIRST_USER))
  add('one', false)
  if (hosts === 2) add('two', true)
  if (hasReplica) add('replica', true)
}

/** Checks the invariants that hold at each event. */
function watch(service: Service): void {
  const { world, reads } = service
  const locks = new Locks()
  const waits = new Waits(service)
  reads.onAsk = (read) => waits.asked(read)
  reads.onSend = (read, sent) => {
    isRepeatedOnlyWhereSafe(world, read)
    isRepeatedOnAnotherSession(world, read)
    isRepeatedAlone(service, read, sent)
    isNotSentBehindASlowRead(world, read, sent)
    isSentForSomebody(world, read)
    isAlone(service, read, sent)
    needsNoLostPlan(world, read, sent)
    isSentToTheHostInUse(service, read, sent)
    leavesRoomForOthers(service, read)
    locks.oneReadTries(service, read)
    waits.sent(read)
  }
  reads.onAnswer = (read, sent) => {
    if (/^(0A000|26000|42P05)$/.test(sent.result ?? '')) sent.link.hasLostPlan = true
    locks.note(read, sent)
  }
  reads.onEnd = (read) => {
    waits.ended(read)
    endsInTime(world, read)
    if (read.outcome !== 'error') return
    failsWithAKnownError(world, read)
    locks.isRefusedBesideAnother(service, read)
    isRepeatedAfterAFailure(service, read)
    waitsIfItHasBegun(world, read)
  }
  const every = (ms: number, action: () => void) =>
    world.clock.after(ms, () => {
      if (service.isClosed) return
      action()
      every(ms, action)
    })
  every(50, () => {
    hasNoMoreSessionsThanAllowed(service)
    takesNoMoreMemoryThanAllowed(service)
    waits.noneWaitsBesideAnIdleSession()
    for (const read of reads.open) {
      endsInTime(world, read)
      endsWithItsAnswer(world, read)
      endsWhenNobodyWaits(world, read)
    }
  })
  every(1_000, () => {
    const startedAt = world.now
    service.check().then(({ readiness }) => {
      world.journal.record('is', readiness)
      checksInTime(world, startedAt)
    })
  })
}

function plan(service: Service, { bursts, faults }: Schedule): void {
  const { world, network } = service
  for (const [b, burst] of bursts.entries())
    for (let n = 0; n < burst.count; n += 1)
      world.clock.after(burst.at + n * burst.everyMs, () => {
        void runRequest(service, 1_000 * b + n, requestOf(world, burst, b, n))
      })
  for (const [f, { kind, at, lastsMs, host, choice }] of faults.entries())
    world.clock.after(at, () => {
      const target = network.hosts[host % network.hosts.length]
      if (target === undefined) return
      const draw = (purpose: string | number) => world.chance('fault', f, choice, purpose)
      world.journal.record('fault', kind, target.name)
      const undo = faultOf(kind).begin({ world, network, host: target, choice, draw, service })
      if (undo) world.clock.after(lastsMs, undo)
    })
}

function requestOf(world: World, burst: Burst, b: number, n: number): PlannedRequest {
  const draw = (purpose: string) => world.chance('request', b, n, purpose)
  const { kind, rows, bytes, app, leaving } = burst
  return {
    kind,
    app: app === 0 ? undefined : `app ${app}`,
    rows: kind === 'large page' ? rows * 4 : rows,
    bytes,
    ms: burst.ms * draw('ms'),
    leavesAfterMs: draw('leaves') < leaving ? 1_500 * draw('after') ** 2 : undefined,
    receivesMs: 60 * draw('receives') ** 3,
    failure: draw('fails') < 0.5 ? burst.failure : undefined,
  }
}

/** Ends all faults: one primary, which all standbys follow. */
function heal(network: Network): void {
  const timeline = Math.max(...network.hosts.map((host) => host.timeline))
  const candidates = network.hosts.filter(({ name }) => name !== 'replica')
  const primary =
    candidates.find((host) => host.timeline === timeline && !host.isStandby) ??
    candidates.find((host) => host.timeline === timeline)
  for (const host of network.hosts) {
    host.start()
    host.thaw()
    if (host !== primary) host.demote(timeline)
  }
  if (primary?.isStandby) primary.promote(timeline)
}

/** Sends a request of each kind for each app. @returns the kinds whose request failed, or took long */
async function sendEach(service: Service, apps: string[]): Promise<string[]> {
  const { world } = service
  const startedAt = world.now
  const bad: string[] = []
  const usual = { rows: 13, bytes: 100, ms: 5, receivesMs: 1 }
  const rest = { leavesAfterMs: undefined, failure: undefined }
  for (const app of apps)
    for (const [n, kind] of KINDS.entries())
      void runRequest(service, n, { kind, app, ...usual, ...rest }).then((isSent) => {
        const ms = world.now - startedAt
        if (!isSent || ms > USUAL_MS) bad.push(`${kind} ${isSent} after ${ms} ms`)
      })
  await world.clock.runUntil(startedAt + ROUND_MS)
  return bad
}

async function recover(service: Service): Promise<void> {
  const { network, reads, world } = service
  // Together, they use all sessions.
  const several = ['app 1', 'app 2', 'app 3', 'app 4']
  for (let round = 0; round < RECOVERY_ROUNDS; round += 1) await sendEach(service, several)
  // A session is found to be silent when a read uses it. Those of the primary may rest while a replica serves the reads.
  const silent = network.links.filter(({ endsInSilence }) => endsInSilence).length
  for (let round = 0; round <= silent; round += 1) {
    const first = reads.all.length
    const failures = await sendEach(service, ['recovered', 'recovered, too'])
    const sends = reads.all.slice(first).flatMap((read) => read.sends)
    if (sends.some(({ link }) => link.isSilent)) continue
    for (const failure of failures) world.violate('after the faults, all reads succeed', failure)
    return
  }
  world.violate('after the faults, silent sessions are closed', `${silent} sessions`)
}

async function end(service: Service): Promise<void> {
  const { world, db, reads } = service
  const latest = world.now + END_MS
  while (service.open > 0 && world.now < latest) await world.clock.runUntil(world.now + 1_000)
  service.isClosed = true
  await world.clock.runUntil(world.now + 2_000)
  const name = 'each read ends exactly once'
  for (const { id } of reads.open) world.violate(name, `read ${id} has not ended`)
  if (service.endedReads !== reads.all.length)
    world.violate(name, `${service.endedReads} ends of ${reads.all.length} reads`)
  if (service.open > 0) world.violate('each request ends', `${service.open} are open`)
  returnsAllThatItTook(service)
  hasLostNoSession(service)
  db.close()
  await world.clock.runUntil(world.now + 5_000)
  leavesNothingOpen(service)
}
