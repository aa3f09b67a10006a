import { styleText } from 'node:util'
import { type Base, type Spawn, Test, t } from 'tap'

/** Assertions of all files. A file that crashed or asserted nothing counts as one failure. */
export interface Counts {
  passed: number
  failed: number
  /** Duration of each file that has passed, in ms. */
  durations: Record<string, number>
}

interface Options {
  /** Number of files that run at the same time. */
  jobs: number
  print: (line: string) => void
  /** Its abort ends all files. */
  signal: AbortSignal
}

/** Loads tap before a test file. A new space of 16 MB saves 45 ms of processor time at the start. */
const flags = [
  '--min-semi-space-size=16',
  ...['--import', new URL('../preload.ts', import.meta.url).href],
]
const timeoutSeconds = 600
/** Number of files that the summary names. */
const slowest = 5

// Each file has a time limit. tap's default would end this process 30 seconds after this import: on a busy machine, the
// template of the tests takes longer.
t.setTimeout(0)

/**
 * Runs each file in its own process, some at the same time, as children of one tap test. tap's command would
 * compile TypeScript, which Node runs directly. It would also set NODE_OPTIONS, so that each process of a
 * file collects coverage. Prints each file when it ends, after its failures.
 */
export async function runFiles(
  files: string[],
  env: NodeJS.ProcessEnv,
  { jobs, print, signal }: Options,
): Promise<Counts> {
  const all = new Test({ name: 'all', jobs, timeout: 0 })
  const ended: Base[] = []
  all.on('subtestEnd', (file) => {
    if (signal.aborted) return
    ended.push(file)
    if (!hasPassed(file)) for (const line of failuresOf(file)) print(line)
    const result = hasPassed(file) ? styleText('green', 'ok') : styleText('red', 'not ok')
    print(`${result} ${ended.length} of ${files.length}: ${describe(file)}`)
  })
  const limit = { TAP_TIMEOUT: String(timeoutSeconds), ...env }
  for (const file of files) {
    const options = { timeout: Number(limit.TAP_TIMEOUT) * 1000, buffered: true, at: null }
    const command = [`NODE_OPTIONS=${env.NODE_OPTIONS ?? ''}`, process.execPath, ...flags, file]
    all.spawn('env', command, { ...options, env: limit }, file)
  }
  const endAll = () => {
    const running = [...all.activeSubtests]
    all.bailout('interrupted')
    for (const file of running) (file as Spawn).proc?.kill()
  }
  if (signal.aborted) endAll()
  signal.addEventListener('abort', endAll)
  all.end()
  all.resume()
  await all.promise()
  if (signal.aborted) print(`Interrupted after ${ended.length} of ${files.length} files.`)
  else if (ended.length > slowest) {
    const sorted = ended.toSorted((a, b) => (b.time ?? 0) - (a.time ?? 0))
    print(`Slowest: ${sorted.slice(0, slowest).map(describe).join(', ')}`)
  }
  const { pass, fail } = all.counts
  const bad = ended.filter((file) => !hasPassed(file))
  const durations = Object.fromEntries(
    ended.filter(hasPassed).map(({ name, time = 0 }) => [name, Math.round(time)]),
  )
  return {
    passed: pass,
    failed: Math.max(fail + bad.filter(isEmpty).length, bad.length),
    durations,
  }
}

const isEmpty = (file: Base) => file.options.skip === 'no tests found'
const hasPassed = (file: Base) => file.passing() && !isEmpty(file)

function describe({ name, time = 0 }: Base): string {
  return `${name} (${(time / 1000).toFixed(1)} s)`
}

/** Returns the failures in the output of a file, with the tests that contain them. */
function failuresOf(file: Base): string[] {
  const { exitCode, signal, expired } = file.options
  const lines: string[] = []
  let subtests: string[] = []
  for (const line of file.output.split('\n')) {
    if (passed.test(line)) continue
    if (/^ *# Subtest/.test(line)) {
      const depth = line.indexOf('#')
      subtests = [...subtests.filter((above) => above.indexOf('#') < depth), line]
    } else {
      lines.push(...subtests, line)
      subtests = []
    }
  }
  if (isEmpty(file)) lines.push('    This file asserts nothing.')
  if (expired) lines.push(`    expired: ${expired}`)
  if (exitCode || signal) lines.push(`    ended with ${signal ?? `exit code ${exitCode}`}`)
  return lines
}

/** Lines about assertions that passed. */
const passed = /^ *(ok |TAP version|1\.\.|# time=|$)/
