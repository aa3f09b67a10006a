import { spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A copy of the project, in which one mutant at a time is put into the code. */
export interface Copy {
  folder: string
  /** Runs one test file. It ends at the first failure or after `timeout` ms. */
  runTest(test: string, timeout: number, env?: NodeJS.ProcessEnv): Promise<TestResult>
  checkTypes(): Promise<TestResult>
  write(file: string, code: string): Promise<void>
  remove(): Promise<void>
}

export interface TestResult {
  result: 'passed' | 'failed' | 'timeout'
  ms: number
  output: string
}

// Checks the changed files and those that import them: half of the CPU time of a full check.
const TSC = [
  'node_modules/typescript/bin/tsc',
  '--incremental',
  '--assumeChangesOnlyAffectDirectDependencies',
]

const left = new Set(['.git', '.data', '.tap', 'node_modules'])

/** Copies the project to a temporary folder, without node_modules: a link is enough. */
export async function copyProject(environment: NodeJS.ProcessEnv): Promise<Copy> {
  const folder = await mkdtemp(join(tmpdir(), 'mutants-'))
  const filter = (path: string) => !left.has(basename(path))
  for (const entry of await readdir('.'))
    if (filter(entry)) await cp(entry, join(folder, entry), { recursive: true, filter })
  await symlink(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'))
  // Halves the time to load the service. Coverage would be inexact with it.
  const cache = { NODE_COMPILE_CACHE: join(folder, 'compile-cache') }
  const run = (script: string[], timeout: number, env: NodeJS.ProcessEnv = {}) =>
    new Promise<TestResult>((resolve, reject) => {
      const start = performance.now()
      const child = spawn(process.execPath, script, {
        cwd: folder,
        env: {
          ...environment,
          ...cache,
          TAP_BAIL: '1',
          TAP_TIMEOUT: String(timeout / 1000),
          ...env,
        },
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      const output: string[] = []
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (data) => output.push(String(data)))
      // The group also has the processes that the test started.
      const kill = () => {
        try {
          process.kill(-Number(child.pid), 'SIGKILL')
        } catch {}
      }
      let late = false
      const timer = setTimeout(() => {
        late = true
        kill()
      }, timeout)
      child.on('error', reject)
      child.on('exit', (code) => {
        clearTimeout(timer)
        kill()
        const result = late ? 'timeout' : code === 0 ? 'passed' : 'failed'
        resolve({ result, ms: performance.now() - start, output: output.join('') })
      })
    })
  return {
    folder,
    runTest: (test, ...options) => run([test], ...options),
    checkTypes: () => run(TSC, 120_000),
    write: (file, code) => writeFile(join(folder, file), code),
    remove: () => rm(folder, { recursive: true }),
  }
}

interface ScriptCoverage {
  url: string
  functions: { ranges: { startOffset: number; endOffset: number; count: number }[] }[]
}

/** Offsets that ran, by source file: 1 at each offset of the file that was executed. */
export type Coverage = Map<string, Uint8Array>

/**
 * Reads the coverage that V8 wrote at the end of each process (NODE_V8_COVERAGE). Node.js strips types
 * without moving the rest, so offsets are those of the TypeScript file.
 */
export async function readCoverage(folder: string, copy: string): Promise<Coverage> {
  const coverage: Coverage = new Map()
  for (const name of await readdir(folder).catch(() => [])) {
    const { result } = JSON.parse(await readFile(join(folder, name), 'utf8')) as {
      result: ScriptCoverage[]
    }
    for (const { url, functions } of result) {
      if (!url.startsWith('file:')) continue
      const file = relative(copy, fileURLToPath(url))
      if (!file.startsWith('src/')) continue
      const ranges = functions.flatMap((one) => one.ranges)
      const length = Math.max(0, ...ranges.map(({ endOffset }) => endOffset))
      const ran = new Uint8Array(length)
      // Outer ranges come before the ranges within them.
      for (const { startOffset, endOffset, count } of ranges)
        ran.fill(count > 0 ? 1 : 0, startOffset, endOffset)
      const all = coverage.get(file)
      if (all === undefined) coverage.set(file, ran)
      else for (const [index, value] of ran.entries()) if (value === 1) all[index] = 1
    }
  }
  return coverage
}
