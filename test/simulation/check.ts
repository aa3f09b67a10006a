import { fc } from '../support/random.ts'
import { type Schedule, schedules } from './schedule.ts'
import { simulate } from './simulate.ts'
import { faultKinds } from './world/faults.ts'

/** Longest search for a smaller schedule, in ms. */
const SHRINK_MS = 20_000

export interface Result {
  /** The smallest schedule that fails, with what it has shown. Undefined if all hold. */
  failure: string | undefined
  /** Figures of all runs, and the failure. */
  report: string
}

/** Runs schedules of a seed. After a failure, it searches for the smallest schedule that fails. */
export async function check(
  seed: number,
  numRuns: number,
  { shrinks = true } = {},
): Promise<Result> {
  const totals = { schedules: 0, reads: 0, virtualMs: 0 }
  const faults = new Map<string, number>()
  const startedAt = process.hrtime.bigint()
  const wallMs = () => Number(process.hrtime.bigint() - startedAt) / 1e6
  let failedAt: number | undefined
  let smallest: Schedule | undefined
  let shown = ''
  const property = fc.asyncProperty(schedules, async (schedule) => {
    const isShrinking = failedAt !== undefined
    if (isShrinking && wallMs() > Number(failedAt) + SHRINK_MS) return
    const { violations, journal, reads, virtualMs } = await simulate(schedule)
    if (!isShrinking) {
      totals.schedules += 1
      totals.reads += reads
      totals.virtualMs += virtualMs
      for (const { kind } of schedule.faults) faults.set(kind, (faults.get(kind) ?? 0) + 1)
    }
    if (violations.length === 0) return
    failedAt ??= wallMs()
    smallest = schedule
    shown = violations
      .map(({ at, invariant, detail }) => `${at} ms: ${invariant}: ${detail}`)
      .join('\n')
    throw new Error(`${journal.digest}: ${shown}`)
  })
  const { failed, counterexamplePath, errorInstance } = await fc.check(property, {
    seed,
    numRuns,
    endOnFailure: !shrinks,
  })
  const lines = [
    `${totals.schedules} schedules, ${totals.reads} reads, ${Math.round(totals.virtualMs / 1000)} s of virtual time in ${(wallMs() / 1000).toFixed(1)} s`,
    faultKinds.map((kind) => `${kind}: ${faults.get(kind) ?? 0}`).join(', '),
  ]
  if (!failed) return { failure: undefined, report: lines.join('\n') }
  const failure = [
    `Seed ${seed}, schedule ${totals.schedules} (path ${counterexamplePath}):`,
    JSON.stringify(smallest),
    shown || String(errorInstance),
  ].join('\n')
  return { failure, report: [...lines, failure].join('\n') }
}
