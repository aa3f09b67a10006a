import { type ChildProcess, fork } from 'node:child_process'
import { styleText } from 'node:util'
import type { FileCounts, Task } from './test-process.ts'

/** Assertions of all files. A file that crashed or asserted nothing counts as one failure, and a process with an error, too. */
export interface Counts {
  passed: number
  failed: number
  /** Duration of each file that has passed, in ms. */
  durations: Record<string, number>
}

interface Options {
  /** Number of files that run at the same time. */
  jobs: number
  /** Each file runs in a new process, so that a file fails if it needs what an earlier one has loaded. */
  newProcesses: boolean
  print: (line: string) => void
  /** Its abort ends all files. */
  signal: AbortSignal
}

/** A file that has ended. */
interface Ended extends FileCounts {
  name: string
  ms: number
  /** What it has printed. */
  output: string
}

/** Loads tap before the first test file. A new space of 16 MB saves 45 ms of processor time at the start. */
const flags = [
  '--disable-warning=ExperimentalWarning',
  '--min-semi-space-size=16',
  ...['--import', new URL('../preload.ts', import.meta.url).href],
]
const timeoutSeconds = 600
/** Limit of a file that tap cannot end, such as an endless loop. It is longer than what any file sets with t.setTimeout(). */
const endlessSeconds = 1_800
/** Limit of the end of a process after its last file. */
const endSeconds = 30
/** Number of files that the summary names. */
const slowest = 5

/** A process that runs one file after the other, or one file with `newProcesses`. It ends with the first one that fails. */
class TestProcess {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #names: string[] = []
  #output = ''
  #onCounts: (counts: FileCounts) => void = () => {}

  constructor(env: NodeJS.ProcessEnv, signal: AbortSignal) {
    this.#child = fork(new URL('test-process.ts', import.meta.url), {
      env: { TAP_TIMEOUT: String(timeoutSeconds), ...env },
      execArgv: flags,
      silent: true,
      signal,
    })
    // An abort, and a file that is sent to a process that has ended. `close` follows both.
    this.#child.on('error', () => {})
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        this.#output += text
      })
    }
    // tap also sends its time limit, which this process does not need.
    this.#child.on('message', (message: FileCounts) => {
      if ('passed' in message) this.#onCounts(message)
    })
    this.#ended = new Promise((resolve) => this.#child.on('close', resolve))
    // A program that a file has left may keep the pipes open.
    this.#child.on('exit', () => setTimeout(() => this.#closePipes(), 1_000).unref())
  }

  async run(name: string): Promise<Ended> {
    this.#names.push(name)
    this.#output = ''
    const startedAt = performance.now()
    const counts = await this.#within(endlessSeconds, this.#countsOf(name))
    const endsProcess = counts === undefined || counts.failed > 0
    if (endsProcess) await this.#within(endSeconds, this.#ended)
    const ms = performance.now() - startedAt
    if (counts === undefined)
      this.#output += `\n    ended with ${this.#reason() ?? 'exit code 0'}; ${this.#history()}`
    return { name, ms, output: this.#output, passed: 0, failed: 1, ...counts }
  }

  /** Returns its counts, or undefined if the process ends before. */
  #countsOf(file: string): Promise<FileCounts | undefined> {
    const counts = new Promise<FileCounts>((resolve) => {
      this.#onCounts = resolve
    })
    this.#send({ file })
    return Promise.race([counts, this.#ended.then(() => undefined)])
  }

  /** Ends the process after its last file. Returns why it has not ended by itself, or with an error. */
  async end(): Promise<string | undefined> {
    this.#output = ''
    // Node.js reports no `close` of a child that its parent disconnects.
    this.#send({})
    await this.#within(endSeconds, this.#ended)
    const reason = this.#reason()
    if (reason === undefined) return undefined
    return `${this.#output}\na process ended with ${reason}; ${this.#history()}`
  }

  /** The cause of an end may be in an earlier file. */
  #history(): string {
    return `its files: ${this.#names.join(', ')}`
  }

  #closePipes() {
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
  }

  #send(task: Task) {
    this.#child.send(task)
  }

  async #within<T>(seconds: number, event: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), seconds * 1000)
    return event.finally(() => clearTimeout(timer))
  }

  /** Why the process has ended, if it has not ended without an error. */
  #reason(): string | undefined {
    const { exitCode, signalCode } = this.#child
    if (exitCode === 0) return undefined
    return signalCode ?? `exit code ${exitCode}`
  }
}

/**
 * Runs the files in some processes at the same time, each of which runs one file after the other. Prints each file when it
 * ends, after its failures.
 *
 * tap's command starts a process for each file, which loads the service again, and runs code that V8 has not optimized. With
 * a process for each file, `npm test` takes 228 s of processor time; with these processes, 151 s. tap's command would also
 * compile TypeScript, which Node.js runs directly.
 */
export async function runFiles(
  files: string[],
  env: NodeJS.ProcessEnv,
  { jobs, newProcesses, print, signal }: Options,
): Promise<Counts> {
  const waiting = [...files]
  const ended: Ended[] = []
  let failedProcesses = 0
  const report = (file: Ended) => {
    if (signal.aborted) return
    ended.push(file)
    if (file.failed > 0) for (const line of failuresOf(file)) print(line)
    const result = file.failed > 0 ? styleText('red', 'not ok') : styleText('green', 'ok')
    print(`${result} ${ended.length} of ${files.length}: ${describe(file)}`)
  }
  const end = async (process: TestProcess) => {
    const problem = await process.end()
    if (problem === undefined) return
    failedProcesses += 1
    if (!signal.aborted) print(`${problem}\n${styleText('red', 'not ok')}`)
  }
  const work = async () => {
    let process: TestProcess | undefined
    for (let name = waiting.shift(); name && !signal.aborted; name = waiting.shift()) {
      process ??= new TestProcess(env, signal)
      const file = await process.run(name)
      report(file)
      if (file.failed > 0) process = undefined
      else if (newProcesses) {
        await end(process)
        process = undefined
      }
    }
    if (process !== undefined) await end(process)
  }
  await Promise.all(Array.from({ length: jobs }, work))
  if (signal.aborted) print(`Interrupted after ${ended.length} of ${files.length} files.`)
  else if (ended.length > slowest) {
    const sorted = ended.toSorted((a, b) => b.ms - a.ms)
    print(`Slowest: ${sorted.slice(0, slowest).map(describe).join(', ')}`)
  }
  const passed = ended.filter(({ failed }) => failed === 0)
  return {
    passed: ended.reduce((sum, file) => sum + file.passed, 0),
    failed: ended.reduce((sum, file) => sum + file.failed, failedProcesses),
    durations: Object.fromEntries(passed.map(({ name, ms }) => [name, Math.round(ms)])),
  }
}

function describe({ name, ms }: Ended): string {
  return `${name} (${(ms / 1000).toFixed(1)} s)`
}

/** Returns the failures in the output of a file, with the tests that contain them. */
function failuresOf({ output }: Ended): string[] {
  const lines: string[] = []
  let subtests: string[] = []
  for (const line of output.split('\n')) {
    if (passed.test(line)) continue
    if (/^ *# Subtest/.test(line)) {
      const depth = line.indexOf('#')
      subtests = [...subtests.filter((above) => above.indexOf('#') < depth), line]
    } else {
      lines.push(...subtests, line)
      subtests = []
    }
  }
  return lines
}

/** Lines about assertions that passed. */
const passed = /^ *(ok |TAP version|1\.\.|# time=|$)/
