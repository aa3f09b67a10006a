import type { Load } from './loads.ts'
import type { Runner, Sample } from './runners.ts'
import { median } from './statistics.ts'

export interface MeasureOptions {
  rounds: number
  durationMs: number
  warmUpMs: number
  /** After LEAST_ROUNDS, no further round starts if it would probably end later than this after the first one started. */
  budgetMs?: number
}

/** Rounds of every measurement: two show no outlier. */
const LEAST_ROUNDS = 3

/** A runner whose first round takes as many times as long as planned runs once: its requests take seconds. */
const PATIENCE = 3

/** Samples of one target and load, one for each round. */
export interface Series {
  load: Load
  target: string
  samples: Sample[]
}

/**
 * Runs every runner once a round, one at a time. Other work of the machine then affects all runners
 * equally.
 */
export async function measure(
  runners: Runner[],
  { rounds, durationMs, warmUpMs, budgetMs = Number.POSITIVE_INFINITY }: MeasureOptions,
): Promise<Series[]> {
  const series = runners.map((runner): Series => ({ ...runner, samples: [] }))
  const slow = new Set<Runner>()
  const begin = performance.now()
  for (let round = 1; round <= rounds; round += 1) {
    const spent = performance.now() - begin
    if (round > LEAST_ROUNDS && spent + spent / (round - 1) > budgetMs) break
    for (const [index, runner] of runners.entries()) {
      if (slow.has(runner)) continue
      const started = performance.now()
      await runner.warmUp(round === 1 ? warmUpMs : warmUpMs / 3)
      const sample = await runner.run(durationMs)
      if (sample) series[index]?.samples.push(sample)
      if (performance.now() - started > PATIENCE * (warmUpMs + durationMs)) slow.add(runner)
      const rate = sample ? `${sample.rate.toFixed(1)}/s` : 'not measured'
      process.stderr.write(`round ${round}: (${runner.load.key}) ${runner.target}: ${rate}\n`)
    }
  }
  return series.filter(({ samples }) => samples.length > 0)
}

/** Describes the rounds of a measurement in a sentence, also that its time ran out. */
export function describeRounds(series: Series[], { rounds, durationMs, budgetMs }: MeasureOptions) {
  const done = Math.max(0, ...series.map(({ samples }) => samples.length))
  const medians = `Medians of ${done} rounds of ${durationMs / 1000} s.`
  const isCut = done < rounds && budgetMs !== undefined
  const planned = `The time of ${(budgetMs ?? 0) / 1000} s ran out: ${rounds} rounds were planned.`
  return isCut ? `${medians} ${planned}` : medians
}

/** Median of one figure over the rounds; undefined if it was not measured. */
export function medianOf(samples: Sample[], name: keyof Sample): number | undefined {
  const values = samples.map((sample) => sample[name]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}
