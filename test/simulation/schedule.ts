import { fc } from '../support/random.ts'
import { faultKinds, faultOf, type PlannedFault } from './world/faults.ts'
import type { Failure } from './world/statements.ts'

export type RequestKind = 'page' | 'large page' | 'deep page' | 'orders' | 'export'

export interface Settings {
  /** Connections to each server. */
  size: number
  pooler: 'none' | 'keeps plans' | 'forgets plans'
  /** Hosts of the URL. */
  hosts: 1 | 2
  hasReplica: boolean
  memoryMb: number
  readsHistory: boolean
}

/** Requests of one app, one after the other or at once. */
export interface Burst {
  at: number
  kind: RequestKind
  /** 0 is a caller whose app no read finds. */
  app: number
  count: number
  everyMs: number
  /** Longest time of a statement, in ms. */
  ms: number
  rows: number
  bytes: number
  /** Share of the clients that leave early. */
  leaving: number
  failure: Failure | undefined
}

/** All that decides a run: the seed decides what is not named, such as the delay of each packet. */
export interface Schedule {
  seed: number
  settings: Settings
  bursts: Burst[]
  faults: PlannedFault[]
}

/** Time in which requests and faults begin, in ms. */
export const BUSY_MS = 20_000

const settings: fc.Arbitrary<Settings> = fc.record({
  size: fc.integer({ min: 3, max: 8 }),
  pooler: fc.constantFrom('none', 'none', 'none', 'keeps plans', 'forgets plans'),
  hosts: fc.constantFrom(1, 2),
  hasReplica: fc.boolean(),
  memoryMb: fc.constantFrom(1, 4, 64),
  readsHistory: fc.constantFrom(true, true, true, false),
})

const OWN_ERRORS = ['22P02', '22012', '57014', '42P01', '40001', 'XX000']

const failure: fc.Arbitrary<Failure> = fc.record({
  at: fc.constantFrom('bind', 'execute', 'row'),
  code: fc.constantFrom(...OWN_ERRORS),
})

/** Many statements are fast, and some take long. */
const statementMs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 20 }) },
  { weight: 3, arbitrary: fc.integer({ min: 20, max: 300 }) },
  { weight: 1, arbitrary: fc.integer({ min: 300, max: 2_500 }) },
)

const burst: fc.Arbitrary<Burst> = fc.record({
  at: fc.integer({ min: 0, max: BUSY_MS }),
  kind: fc.constantFrom('page', 'page', 'page', 'orders', 'large page', 'deep page', 'export'),
  app: fc.integer({ min: 0, max: 4 }),
  count: fc.integer({ min: 1, max: 30 }),
  everyMs: fc.constantFrom(0, 1, 10, 50, 200),
  ms: statementMs,
  rows: fc.constantFrom(0, 1, 13, 40, 120),
  bytes: fc.constantFrom(10, 100, 700, 4_000),
  leaving: fc.constantFrom(0, 0, 0, 0.2, 1),
  failure: fc.oneof(
    { weight: 6, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: failure },
  ),
})

const kind = fc.oneof(
  ...faultKinds.map((each) => ({ weight: faultOf(each).rate, arbitrary: fc.constant(each) })),
)

const fault: fc.Arbitrary<PlannedFault> = fc.record({
  kind,
  at: fc.integer({ min: 0, max: BUSY_MS }),
  lastsMs: fc.integer({ min: 50, max: 8_000 }),
  host: fc.nat(2),
  choice: fc.nat(1_000),
})

/** Schedules of the usual size: some hundred reads, and several faults. */
export const schedules: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.nat(),
  settings,
  bursts: fc.array(burst, { minLength: 1, maxLength: 30, size: 'max' }),
  faults: fc.array(fault, { maxLength: 10, size: 'max' }),
})
