import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import t, { Test } from 'tap'

/** Assertions of all files. A file that crashed or asserted nothing counts as one failure. */
export interface Counts {
  passed: number
  failed: number
}

const jobs = 2
const timeoutSeconds = 300

/**
 * Runs each file in its own process, two at a time, as children of one tap test. tap's command would
 * compile TypeScript, which Node runs directly. Prints a line for each file, and the failures of a
 * file.
 */
export async function runFiles(
  files: string[],
  env: NodeJS.ProcessEnv,
  print: (line: string) => void,
): Promise<Counts> {
  // Each file has a time limit; tap's default would end this process after 30 seconds.
  t.setTimeout(0)
  const all = new Test({ name: 'all', jobs, timeout: 0 })
  for (const file of files) {
    const options = { timeout: timeoutSeconds * 1000, buffered: true, at: null }
    const own = { ...env, TAP_TIMEOUT: String(timeoutSeconds) }
    all.spawn(process.execPath, [file], { ...options, env: own }, file)
  }
  process.once('SIGINT', () => all.bailout('interrupted'))
  all.end()
  await printFiles(Readable.from(all), print)
  const { pass, fail } = all.counts
  const bad = (all.results?.fail ?? 0) + (all.results?.skips ?? []).filter(isEmpty).length
  return { passed: pass, failed: Math.max(fail, bad) }
}

const isEmpty = (file: { skip: unknown }) => file.skip === 'no tests found'

/** tap prints the indented lines of a file, then its result, then its exit code or signal. */
async function printFiles(output: Readable, print: (line: string) => void) {
  let file: string[] = []
  for await (const line of createInterface({ input: output })) {
    const [, not, closing] = /^(not )?ok \d+ - (.*)/.exec(line) ?? []
    if (closing) {
      const fails = not !== undefined || closing.endsWith('# SKIP no tests found')
      for (const output of fails ? file : []) print(output)
      print(`${fails ? 'not ok' : 'ok'} ${closing}`)
      file = []
    } else if (endedBadly.test(line)) print(line)
    else if (/^ {4}[^-]/.test(line) && !passed.test(line)) file.push(line)
  }
}

const endedBadly = /^ {2}(exitCode|signal|expired): (?!0|null)/
const passed = /^ *(ok |1\.\.|# time=|$)/
