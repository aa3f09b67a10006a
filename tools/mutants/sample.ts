/**
 * Draws places of the whole repository by a seed, changes one at a time, and runs the tests of its area:
 * `npm run test:mutants -- --seed 1 --count 200`. `--from 50` continues a sample.
 */
import { spawn } from 'node:child_process'
import { glob, readFile } from 'node:fs/promises'
import { FILES, testsOf } from './areas.ts'
import { equivalent } from './equivalent.ts'
import { type Mutant, mutantsOf } from './mutators.ts'
import { linesMutants } from './text-mutators.ts'
import { type Copy, copyProject } from './workplace.ts'

interface Place extends Mutant {
  file: string
  code: string
}

/** Maximum time of a group of tests, in ms. */
const LIMIT_MS = 900_000
/** Maximum time of a test file, in seconds: four times that of the longest. A file that does not end has failed. */
const FILE_LIMIT_S = 240

type Status = 'killed' | 'timeout' | 'survived' | 'does not compile' | 'equivalent'

/** @returns exit code: 0 if at least `goal` of the mutants were killed */
export async function runSample(
  { seed, count, from, goal }: { seed: number; count: number; from: number; goal: number },
  print: (...line: unknown[]) => void,
) {
  const places = await placesOfAll()
  const drawn = draw(places, seed, count).slice(from)
  print(`seed ${seed}: ${drawn.length} of ${places.length} places`)
  const copy = await copyProject({ TEST_RUNS: '1', ...process.env })
  const counts = new Map<Status, number>()
  const killers = new Set<string>()
  let interrupted = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.on(signal, () => {
      interrupted = true
    })
  try {
    for (const [index, place] of drawn.entries()) {
      if (interrupted) break
      const change = describe(place)
      const reason = equivalent[place.file]?.[change]
      const { status, by } = reason
        ? { status: 'equivalent' as const, by: reason }
        : await tryPlace(copy, place)
      // The signal may have ended the tests, too.
      if (interrupted) break
      if (status === 'killed') killers.add(by)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      const line = place.code.slice(0, place.start).split('\n').length
      print(`${from + index} ${status}  ${place.file}:${line}  ${change}  [${by}]`)
    }
    for (const test of killers) {
      if (interrupted) break
      const { result } = await runTests(copy, [test])
      if (result !== 'passed') print(`${test} ${result} without a mutant: do not count it`)
    }
  } finally {
    await copy.remove()
  }
  const of = (status: Status) => counts.get(status) ?? 0
  // A timeout may be that of a busy machine. A test that waits for itself fails before.
  const score = of('killed') / (of('killed') + of('survived'))
  print(`seed ${seed}:`, Object.fromEntries(counts), `score ${(100 * score).toFixed(1)} %`)
  return score >= goal ? 0 : 1
}

async function placesOfAll(): Promise<Place[]> {
  const files: string[] = []
  for await (const file of glob(FILES)) files.push(file)
  const places = files.sort().map(async (file) => {
    const code = await readFile(file, 'utf8')
    const mutants = file.endsWith('.ts') ? mutantsOf(code) : linesMutants(code, file)
    return mutants.map((mutant) => ({ ...mutant, file, code }))
  })
  return (await Promise.all(places)).flat()
}

/** Draws with the generator mulberry32: the same seed draws the same places of the same commit. */
function draw(places: Place[], seed: number, count: number): Place[] {
  let state = seed
  const random = () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const left = [...places]
  return Array.from({ length: Math.min(count, left.length) }, () =>
    left.splice(Math.floor(random() * left.length), 1),
  ).flat()
}

/** The changed lines, before and after, as equivalent.ts has them. */
function describe({ code, start, end, text }: Place): string {
  const first = code.lastIndexOf('\n', start - 1) + 1
  const last = code.indexOf('\n', end)
  const short = (between: string) =>
    (code.slice(first, start) + between + code.slice(end, last))
      .trim()
      .replaceAll(/\s+/g, ' ')
      .slice(0, 160)
  return `${short(code.slice(start, end))} -> ${short(text)}`
}

async function tryPlace(copy: Copy, { file, code, start, end, text }: Place) {
  await copy.write(file, code.slice(0, start) + text + code.slice(end))
  try {
    const isCompiled = /^(src|migrations|seeds|tools)\//.test(file)
    for (const [index, group] of testsOf(file).entries()) {
      const { result, failed } = await runTests(copy, group)
      if (result === 'timeout') return { status: 'timeout' as const, by: group.join(' ') }
      if (result === 'failed') return { status: 'killed' as const, by: failed }
      // Most mutants end in the first group, so this check is the cheapest here.
      if (index === 0 && isCompiled && (await copy.checkTypes()).result === 'failed')
        return { status: 'does not compile' as const, by: '' }
    }
    return { status: 'survived' as const, by: '' }
  } finally {
    await copy.write(file, code)
  }
}

/** Runs test files on a server of their own, until the first one fails. */
function runTests(copy: Copy, names: string[]) {
  type Result = { result: 'passed' | 'failed' | 'timeout'; failed: string }
  return new Promise<Result>((resolve, reject) => {
    const child = spawn(process.execPath, ['test/run.ts', ...names], {
      cwd: copy.folder,
      env: { ...process.env, TAP_BAIL: '1', TAP_TIMEOUT: String(FILE_LIMIT_S) },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let failed = ''
    let late = false
    const listen = (data: string) => {
      const found = /^not ok \d+ of \d+: (\S+)/m.exec(data)
      if (found === null || failed !== '') return
      failed = found[1] ?? ''
      // It stops its server and its other files.
      child.kill('SIGTERM')
    }
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', listen)
    const timer = setTimeout(() => {
      late = true
      child.kill('SIGTERM')
    }, LIMIT_MS)
    child.on('error', reject)
    child.on('exit', (code) => {
      clearTimeout(timer)
      if (failed) resolve({ result: 'failed', failed })
      else if (late) resolve({ result: 'timeout', failed })
      else resolve({ result: code === 0 ? 'passed' : 'failed', failed: names[0] ?? '' })
    })
  })
}
