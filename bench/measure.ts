import type { Load } from './loads.ts'
import type { Runner, Sample } from './runners.ts'
import { median } from './statistics.ts'

export interface MeasureOptions {
  rounds: number
  durationMs: number
  warmUpMs: number
}

/** What one target did on one load, a sample for each round. */
export interface Series {
  load: Load
  target: string
  samples: Sample[]
}

/**
 * Runs every load on every target and on the limits, one at a time, round after round: whatever else
 * the machine does then meets all alike.
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

/** The median over the rounds of one figure, where it was measured. */
export function medianOf(samples: Sample[], name: keyof Sample): number | undefined {
  const values = samples.map((sample) => sample[name]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}
