import type { Load } from './loads.ts'
import type { Runner, Sample } from './runners.ts'
import { median } from './statistics.ts'

export interface MeasureOptions {
  rounds: number
  durationMs: number
  warmUpMs: number
}

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
  { rounds, durationMs, warmUpMs }: MeasureOptions,
): Promise<Series[]> {
  const series = runners.map((runner): Series => ({ ...runner, samples: [] }))
  for (let round = 1; round <= rounds; round += 1) {
    for (const [index, runner] of runners.entries()) {
      await runner.warmUp(round === 1 ? warmUpMs : warmUpMs / 3)
      const sample = await runner.run(durationMs)
      if (sample) series[index]?.samples.push(sample)
      const rate = sample ? `${sample.rate.toFixed(1)}/s` : 'not measured'
      process.stderr.write(`round ${round}: (${runner.load.key}) ${runner.target}: ${rate}\n`)
    }
  }
  return series.filter(({ samples }) => samples.length > 0)
}

/** Median of one figure over the rounds; undefined if it was not measured. */
export function medianOf(samples: Sample[], name: keyof Sample): number | undefined {
  const values = samples.map((sample) => sample[name]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}
