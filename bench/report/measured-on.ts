import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'

/** The day of this measurement, such as 2026-11-26. */
export function today(): string {
  return new Date().toISOString().slice(0, 10)
}

/** Number and model of the processors of this machine. */
export function processors(): string {
  return `${cpus().length} × ${cpus()[0]?.model}`
}

/** Day, commit and processors of this measurement, as a sentence. */
export function measuredOn(): string {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' })
  return `Measured on ${today()}, commit ${commit.trim()}, ${processors()}.`
}
