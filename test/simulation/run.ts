/**
 * Runs schedules: `npm run test:simulation -- --seed 1 --schedules 1000`. Prints the smallest schedule that fails. With
 * `--replay FILE`, runs the schedule of a file, and prints its events.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { check } from './check.ts'
import { simulate } from './simulate.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    schedules: { type: 'string', default: '1000' },
    replay: { type: 'string' },
    /** Stops at the first failure, without a search for a smaller one. */
    first: { type: 'boolean', default: false },
  },
})

async function replay(file: string): Promise<boolean> {
  const { journal, violations } = await simulate(JSON.parse(readFileSync(file, 'utf8')), true)
  for (const line of journal.lines) console.log(line)
  console.log(violations)
  return violations.length === 0
}

async function runMany(seed: number): Promise<boolean> {
  const schedules = Number(values.schedules)
  console.log(`seed ${seed}, ${schedules} schedules`)
  const { report, failure } = await check(seed, schedules, { shrinks: !values.first })
  console.log(report)
  return failure === undefined
}

const holds = values.replay ? await replay(values.replay) : await runMany(Number(values.seed))
process.exitCode = holds ? 0 : 1
