import { Admission } from '../../src/limits/admission.ts'
import { MemoryAccount } from '../../src/limits/memory-account.ts'
import { Reader } from '../../src/postgres/reader.ts'
import { readReplica } from '../../src/postgres/replica-read.ts'
import type { RawRows } from '../../src/postgres/wire/query.ts'
import { FactRecorder } from '../../src/request-facts.ts'
import { bodyIsUntouched, comesFromAPrimary, rowsAreThoseOfTheRead } from './invariants.ts'
import type { RequestKind } from './schedule.ts'
import type { Service } from './service.ts'
import type { Failure, ReadName } from './world/statements.ts'

/** One request of a client. */
export interface PlannedRequest {
  kind: RequestKind
  /** Undefined for callers whose token is wrong: no read finds their app. */
  app: string | undefined
  rows: number
  bytes: number
  /** Time of its statement in PostgreSQL, in ms. */
  ms: number
  /** Time after which its client leaves, in ms. */
  leavesAfterMs: number | undefined
  /** Time for which its client reads the response, in ms. */
  receivesMs: number
  failure: Failure | undefined
}

const NAMES: Record<RequestKind, ReadName> = {
  page: 'page',
  'large page': 'page',
  'deep page': 'page',
  orders: 'orders',
  export: 'block',
}
const BLOCKS = 3
const BODY = 4_096

/**
 * Sends one request: it takes what a request takes, in the order of the service, and gives all of it back at its end.
 * @returns true if it got its response
 */
export async function runRequest(
  service: Service,
  number: number,
  plan: PlannedRequest,
): Promise<boolean> {
  const { limits, world } = service
  const recorder = new FactRecorder()
  const admission = new Admission(limits)
  const memory = new MemoryAccount(limits.memory, admission)
  const reader = new Reader({
    owner: admission,
    sizes: limits.pageSizes,
    memory,
    recorder,
    onReadEnd: () => service.readEnded(),
  })
  let isClosed = false
  const close = (isSent: boolean) => {
    if (isClosed) return
    isClosed = true
    service.leaving.delete(leave)
    memory.close(isSent)
    admission.close()
  }
  const leave = () => close(false)
  service.leaving.add(leave)
  if (plan.leavesAfterMs !== undefined) world.clock.after(plan.leavesAfterMs, leave)
  const key = keyOf(plan.app ?? `unknown ${number}`)
  const ip = plan.app === undefined ? '192.0.2.1' : '192.0.2.2'
  service.open += 1
  try {
    admission.enter(ip)
    // The identity provider verifies the credentials.
    await world.clock.wait(plan.receivesMs / 10)
    const { inFlight } = limits.requests
    admission.enter(ip, key)
    if (isClosed && limits.requests.inFlight > inFlight)
      world.violate('a client that has left takes no permit', `request ${number}`)
    await respond(service, plan, { reader, memory, admission, number })
    close(true)
    return true
  } catch (error) {
    service.failed(error)
    const { begins } = admission.placeOfRejection(ip, recorder.facts.receivedAt)
    await begins
    close(true)
    return false
  } finally {
    service.open -= 1
  }
}

const keyOf = (app: string) => `token of ${app}`

interface Parts {
  reader: Reader
  memory: MemoryAccount
  admission: Admission
  number: number
}

async function respond(service: Service, plan: PlannedRequest, parts: Parts): Promise<void> {
  const { kind } = plan
  const { reader } = parts
  if (kind === 'deep page') reader.expectRows(100, 50_000)
  else if (kind === 'large page' || kind === 'export') reader.expectRows(2_000)
  else reader.expectRows(kind === 'orders' ? Number.POSITIVE_INFINITY : plan.rows)
  const first = await readRows(service, plan, parts)
  // It has found the app of the caller.
  if (plan.app !== undefined) service.limits.tenants.knowApp(keyOf(plan.app), plan.app)
  if (kind === 'export') await writeBlocks(service, plan, parts, first)
  else await writeOnce(service, plan, parts, first)
}

/** Reads as src/queries does: from a replica if it has the version of the primary. */
async function readRows(
  service: Service,
  plan: PlannedRequest,
  { reader }: Parts,
): Promise<RawRows> {
  const name = NAMES[plan.kind]
  const replica = service.db.replica()
  if (replica !== undefined) {
    const through = { replica: () => service.observe(replica, name, plan, reader) }
    const lookup = { rows: 1, bytes: 0, ms: 1 }
    const found = await readReplica(through, {
      // service.observed() has the statement and the values of the read.
      ...{ statement: { name: '', title: name, text: '' }, values: [], reader },
      readNewest: async () => versionOf(service, await service.read('lookup', lookup, reader)),
      accept: (rows, newest) => {
        const version = rows.shift()?.[2]
        return version === newest ? newest : undefined
      },
    })
    if (found !== undefined) return found.rows
  }
  return await service.read(name, plan, reader)
}

function versionOf(service: Service, rows: RawRows): string {
  const fields = rows.shift()
  comesFromAPrimary(service, fields)
  return String(fields?.[2])
}

async function writeOnce(
  service: Service,
  plan: PlannedRequest,
  { memory, admission, number }: Parts,
  rows: RawRows,
): Promise<void> {
  checkRows(service, rows)
  await service.limits.writeScheduler.nextSmall(admission.tenant, BODY)
  const body = memory.takeForBody(BODY)
  await send(service.world, body, plan, number)
}

async function writeBlocks(
  service: Service,
  plan: PlannedRequest,
  parts: Parts,
  first: RawRows,
): Promise<void> {
  const { limits, world } = service
  const { memory, reader, admission } = parts
  const body = memory.takeForBody(BODY)
  let rows = first
  for (let block = 1; ; block += 1) {
    await limits.writeScheduler.next(admission.tenant)
    if (memory.isClosed) return
    checkRows(service, rows)
    await send(world, body, plan, parts.number + block)
    if (block === BLOCKS || memory.isClosed) return
    reader.continue()
    rows = await readRows(service, { ...plan, failure: undefined }, parts)
  }
}

function checkRows(service: Service, rows: RawRows): void {
  const read = service.reads.ofRows.get(rows)
  if (read) rowsAreThoseOfTheRead(service, read, rows)
}

/** Sends a body to a client that reads it slowly. */
async function send(
  world: Service['world'],
  body: Buffer,
  { receivesMs }: PlannedRequest,
  number: number,
): Promise<void> {
  const mark = number % 251
  body.fill(mark)
  await world.clock.wait(receivesMs)
  bodyIsUntouched(world, body, mark)
}
