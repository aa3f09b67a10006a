/**
 * Runs `npm run test:mutants`: changes the code in one place at a time, which makes a mutant. Reports the
 * mutants that no test kills. Names of files or folders limit it: `npm run test:mutants -- src/queries`.
 * MUTANT_JOBS sets the number of mutants that it tries at the same time. With MUTANT_SAMPLE=10, it tries
 * every tenth mutant. MUTANT_TESTS is a regular expression that selects the test files. `--seed N --count 200`
 * tries a random sample of the whole repository (sample.ts).
 */
import { glob, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from '../../test/support/postgres.ts'
import { createTemplate } from '../../test/support/template.ts'
import { equivalent } from './equivalent.ts'
import { type Mutant, mutantsOf } from './mutators.ts'
import { runSample } from './sample.ts'
import { type Copy, type Coverage, copyProject, readCoverage } from './workplace.ts'

const GOAL = 0.9
const { values: options, positionals: named } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    count: { type: 'string', default: '200' },
    from: { type: 'string', default: '0' },
  },
})
if (options.seed !== undefined) {
  const sample = { seed: +options.seed, count: +options.count, from: +options.from, goal: GOAL }
  process.exit(await runSample(sample, console.log))
}
const jobs = Number(process.env.MUTANT_JOBS ?? 2)
const sample = Number(process.env.MUTANT_SAMPLE ?? 1)
const wanted = new RegExp(process.env.MUTANT_TESTS ?? '')

/** These tests take long. They test code outside of the three folders. */
const slow =
  /^test\/(import|operator|settings|seeds|repository|clients|load(?!\/(file-limit|fair-shares|log-output))|servers(?!\/(replica-reads|quota-redis)))\/|row-writer|row-counts|partitions|database-connections|wire/

interface Task extends Mutant {
  file: string
  code: string
  line: number
  /** The changed lines, before and after: `<before> -> <after>`. equivalent.ts has it. */
  change: string
}

type Status = 'killed' | 'timeout' | 'survived' | 'uncovered' | 'does not compile' | 'equivalent'

async function tasksOf(file: string): Promise<Task[]> {
  const code = await readFile(file, 'utf8')
  return mutantsOf(code).map((mutant) => {
    const { start, end, text } = mutant
    const first = code.lastIndexOf('\n', start - 1) + 1
    const last = code.indexOf('\n', end)
    const lines = (between: string) => code.slice(first, start) + between + code.slice(end, last)
    const short = (text: string) => text.trim().replaceAll(/\s+/g, ' ').slice(0, 160)
    const change = `${short(lines(code.slice(start, end)))} -> ${short(lines(text))}`
    return { ...mutant, file, code, line: code.slice(0, start).split('\n').length, change }
  })
}

const apply = (code: string, { start, end, text }: Mutant) =>
  code.slice(0, start) + text + code.slice(end)

const isNamed = ({ file, line }: Task, index: number) =>
  index % sample === 0 &&
  (named.length === 0 ||
    named.some((name) => `${file}:${line}:`.startsWith(name.replace(/(:\d+)$/, '$1:'))))

interface Outcome {
  status: Status
  /** The test file that failed, and its first failure; or the reason of an equivalent mutant. */
  by?: string
}

interface TestFile {
  name: string
  ms: number
  coverage: Coverage
}

/**
 * Runs every test file once without a mutant, and checks the types. Both must pass. Records the code that
 * each file executes.
 */
async function runWithoutMutant(names: string[]): Promise<TestFile[]> {
  const tests: TestFile[] = []
  await onEachCopy(names, async (copy, name) => {
    const folder = join(copy.folder, 'v8-coverage')
    const { result, ms, output } = await copy.runTest(name, 300_000, {
      NODE_V8_COVERAGE: folder,
      NODE_DISABLE_COMPILE_CACHE: '1',
    })
    if (result !== 'passed') throw new Error(`${name} ${result} without a mutant:\n${output}`)
    tests.push({ name, ms, coverage: await readCoverage(folder, copy.folder) })
    await rm(folder, { recursive: true, force: true })
    print('passed', ms, name)
  })
  // Otherwise, no survivor would seem to compile. Later checks take less time.
  for (const { result, output } of await Promise.all(copies.map((copy) => copy.checkTypes())))
    if (result !== 'passed') throw new Error(`it does not compile without a mutant:\n${output}`)
  return tests
}

const print = (result: string, ms: number, ...rest: string[]) =>
  console.log(`${result.padEnd(9)} ${(ms / 1000).toFixed(1).padStart(5)} s `, ...rest)

/** Works on the items in order, one at a time in each copy. */
async function onEachCopy<Item>(
  items: Iterable<Item>,
  work: (copy: Copy, item: Item) => Promise<void>,
) {
  const queue = Iterator.from(items)
  await Promise.all(
    copies.map(async (copy) => {
      for (let next = queue.next(); !next.done && !interrupted; next = queue.next())
        await work(copy, next.value)
    }),
  )
}

/** Runs of a test file with mutants of one source file, and those that failed. */
interface TestRecord {
  runs: number
  kills: number
}
const records = new Map<string, TestRecord>()

function recordOf(task: Task, test: TestFile): TestRecord {
  const key = `${task.file} ${test.name}`
  const record = records.get(key) ?? { runs: 0, kills: 0 }
  records.set(key, record)
  return record
}

/** Expected kills per millisecond. */
function rank(task: Task, test: TestFile): number {
  const { runs, kills } = recordOf(task, test)
  return (kills + 1) / (runs + 2) / test.ms
}

async function tryMutant(copy: Copy, task: Task, tests: TestFile[]): Promise<Outcome> {
  const covering = tests.filter(({ coverage }) => coverage.get(task.file)?.[task.start] === 1)
  if (covering.length === 0) return { status: 'uncovered' }
  covering.sort((a, b) => rank(task, b) - rank(task, a))
  await copy.write(task.file, apply(task.code, task))
  try {
    for (const test of covering) {
      const { result, output } = await copy.runTest(test.name, 10_000 + 3 * test.ms)
      const record = recordOf(task, test)
      record.runs += 1
      if (result === 'passed') continue
      record.kills += 1
      const failure = /(?<=not ok \d+ - ).+|.*Error.*/.exec(output)?.[0]
      const status = result === 'timeout' ? 'timeout' : 'killed'
      return { status, by: `${test.name}: ${failure}` }
    }
    const compiled = await copy.checkTypes()
    return { status: compiled.result === 'passed' ? 'survived' : 'does not compile' }
  } finally {
    await copy.write(task.file, task.code)
  }
}

const folders = ['src/queries', 'src/http', 'src/schemas']
const files: string[] = []
for await (const file of glob(folders.map((folder) => `${folder}/**/*.ts`))) files.push(file)
const tasks = (await Promise.all(files.sort().map(tasksOf))).flat().filter(isNamed)
const names: string[] = []
for await (const name of glob('test/!(clients)/**/*.test.ts'))
  if (!slow.test(name) && wanted.test(name)) names.push(name)

const started = performance.now()
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    interrupted = true
  })
// A quarter of the runs of a property would miss changes.
process.env.TEST_RUNS ??= '1'
const server = await startPostgres(process.env)
const template = await createTemplate(server.url)
const env = { ...process.env, TEST_SERVER_URL: server.url, TEST_TEMPLATE: template.name }
const copies = await Promise.all(Array.from({ length: jobs }, () => copyProject(env)))
const results: { task: Task; status: Status }[] = []
try {
  const tests = await runWithoutMutant(names.sort())
  await onEachCopy(tasks, async (copy, task) => {
    const start = performance.now()
    const reason = equivalent[task.file]?.[task.change]
    const { status, by = '' }: Outcome = reason
      ? { status: 'equivalent', by: reason }
      : await tryMutant(copy, task, tests)
    results.push({ task, status })
    print(status, performance.now() - start, `${task.file}:${task.line} `, task.change, ` [${by}]`)
  })
} finally {
  await Promise.all(copies.map((copy) => copy.remove()))
  await template.drop()
  await server.stop()
}

const count = (folder: string, ...counted: Status[]) =>
  results.filter(({ task, status }) => task.file.startsWith(folder) && counted.includes(status))
    .length
const score = (folder: string) => {
  const noticed = count(folder, 'killed', 'timeout')
  return noticed / (noticed + count(folder, 'survived', 'uncovered'))
}
const columns: Status[] = [
  'killed',
  'timeout',
  'survived',
  'uncovered',
  'does not compile',
  'equivalent',
]
console.log(`| folder | ${columns.join(' | ')} | score |`)
for (const folder of [...folders, 'src']) {
  const cells = columns.map((status) => count(folder, status))
  console.log(`| ${folder} | ${cells.join(' | ')} | ${(100 * score(folder)).toFixed(1)} % |`)
}
console.log(`${((performance.now() - started) / 60_000).toFixed(1)} minutes`)
const unknown = files.flatMap((file) =>
  Object.keys(equivalent[file] ?? {}).filter(
    (line) => !results.some(({ task }) => task.file === file && task.change === line),
  ),
)
// Other runs do not see all mutants.
const isOutdated = named.length === 0 && sample === 1 && unknown.length > 0
if (isOutdated) console.log('equivalent.ts: no such mutants:', unknown)
process.exitCode = score('src') >= GOAL && !isOutdated ? 0 : 1
