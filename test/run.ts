/**
 * Runs `npm test`: starts a PostgreSQL server, migrates a template database, and runs all test files or
 * the named ones: `npm test -- test/http/health.test.ts`. Tests that take minutes or need other programs run by
 * name only, such as `npm run test:load`.
 */
import { randomInt } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { styleText } from 'node:util'
import { closestMatch } from 'leven'
import { OperatorError } from '../src/operator-error.ts'
import { isNightly, NIGHTLY } from './nightly.ts'
import { startPostgres } from './support/postgres.ts'
import { DEFAULT_RUNS, DEFAULT_SEED } from './support/random.ts'
import { createTemplate, isCitus } from './support/template.ts'
import { createTemporaryFolder } from './support/temporary-folder.ts'

const interrupt = new AbortController()
let interruptedAt = 0
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The terminal and npm each send a signal for one Ctrl-C. A second one ends the process at once.
    if (interrupt.signal.aborted && Date.now() - interruptedAt > 500) process.exit(1)
    interruptedAt = Date.now()
    interrupt.abort()
  })
}
// The reader of the output, such as `head`, may stop early.
process.stdout.on('error', () => interrupt.abort())

/** Halves the processor time in which a test file or the service starts: 1.4 s and 1.1 s without it. */
const compileCache = join(import.meta.dirname, '../node_modules/.cache/compile')

/**
 * Compiles what most files import, in a new checkout. Otherwise each of the first five files would compile it: that takes
 * 5 s more of processor time.
 */
async function fillCompileCache(): Promise<void> {
  if (existsSync(compileCache)) return
  enableCompileCache(compileCache)
  await Promise.all([
    import('./support/run-files.ts'),
    import('./support/service.ts'),
    import('./support/operator-process.ts'),
    import('../src/operator/loading/import-rows.ts'),
    import('../src/operator/loading/refresh.ts'),
  ])
  flushCompileCache()
}

/** Folders of other commands: test/README.md. */
const OTHER = ['repository', 'clients', 'typescript-client', 'load', 'servers']

const all = globSync('test/**/*.test.ts', {
  exclude: (path) => path.endsWith('node_modules'),
})
  .filter((file) => !OTHER.includes(String(file.split('/')[1])))
  .filter((file) => isNightly || NIGHTLY[file] === undefined)
/** Files that take longest, the longest one first, for a machine that has not run them. */
const LONGEST = [
  'test/servers/rolling-restart.test.ts',
  'test/clients/mcp.test.ts',
  'test/typescript-client/on-changes.test.ts',
  'test/clients/example-amounts.test.ts',
  'test/typescript-client/stores.test.ts',
  'test/servers/citus.test.ts',
  'test/clients/packages.test.ts',
  'test/load/shutdown.test.ts',
  'test/servers/pgbouncer.test.ts',
  'test/load/locks.test.ts',
  'test/typescript-client/sandbox.test.ts',
  'test/load/embedded.test.ts',
  'test/clients/faults.test.ts',
  'test/servers/tutorial-production.test.ts',
  'test/servers/replica-reads.test.ts',
  'test/servers/upgrade.test.ts',
  'test/http/large-reads.test.ts',
  'test/clients/tutorial-tax-report.test.ts',
  'test/load/interrupted-exports.test.ts',
  'test/load/slow-clients.test.ts',
  'test/servers/password-rotation.test.ts',
  'test/load/operator-interrupt.test.ts',
  'test/security/row-level-security.test.ts',
  'test/clients/examples.test.ts',
  'test/load/unfinished-requests.test.ts',
  'test/clients/fault-table.test.ts',
  'test/servers/without-primary.test.ts',
  'test/load/memory-reuse.test.ts',
  'test/typescript-client/bad-days.test.ts',
  'test/load/slow-exports.test.ts',
  'test/load/fair-shares.test.ts',
  'test/servers/failover.test.ts',
  'test/clients/beancount.test.ts',
  'test/servers/refresh-promotion.test.ts',
  'test/clients/browser/docs-screens.test.ts',
  'test/operator/operator-verify.test.ts',
  'test/servers/tls.test.ts',
  'test/clients/browser/docs-page.test.ts',
  'test/clients/python.test.ts',
  'test/servers/cut-responses.test.ts',
  'test/servers/prometheus.test.ts',
  'test/load/collector.test.ts',
  'test/servers/several-instances.test.ts',
  'test/servers/superseded-primary.test.ts',
  'test/clients/browser/docs-search.test.ts',
  'test/load/refresh-limits.test.ts',
  'test/operator/operator-deletion.test.ts',
  'test/operator/refresh.test.ts',
  'test/load/start-errors.test.ts',
  'test/http/delays.test.ts',
  'test/load/export-memory.test.ts',
  'test/load/log-output.test.ts',
  'test/http/pipelining.test.ts',
  'test/servers/stale-standbys.test.ts',
  'test/servers/compose-backup.test.ts',
  'test/load/promoted-objects.test.ts',
  'test/operator/operator-migrate.test.ts',
  'test/servers/promotion.test.ts',
  'test/load/file-limit.test.ts',
  'test/postgres/row-counts.test.ts',
  'test/clients/run-code-samples.test.ts',
  'test/http/access-log.test.ts',
  'test/seeds/demo-advance.test.ts',
  'test/servers/quota-redis.test.ts',
  'test/http/health.test.ts',
  'test/repository/npm-test.test.ts',
  'test/postgres/change-numbers.test.ts',
  'test/http/errors.test.ts',
  'test/security/isolation.test.ts',
  'test/servers/statements.test.ts',
  'test/clients/browser/docs-sandbox.test.ts',
  'test/servers/partition-move.test.ts',
  'test/security/least-privilege.test.ts',
  'test/seeds/seeds.test.ts',
  'test/servers/postgres-15.test.ts',
  'test/clients/mcp-questions.test.ts',
  'test/servers/backup.test.ts',
  'test/postgres/database-connections.test.ts',
  'test/servers/documented-commands.test.ts',
  'test/clients/generated-clients.test.ts',
]
const durationsFile = join(import.meta.dirname, '../node_modules/.cache/test-durations.json')

/** Duration of each file in its last run, in ms. */
function readDurations(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(durationsFile, 'utf8'))
  } catch {
    return {}
  }
}

function writeDurations(durations: Record<string, number>): void {
  mkdirSync(dirname(durationsFile), { recursive: true })
  writeFileSync(durationsFile, JSON.stringify({ ...readDurations(), ...durations }))
}

/** Orders files by their last durations, so that no long file is left alone at the end. Files without one come first. */
function longestFirst(files: string[]): string[] {
  const durations = readDurations()
  const rank = (file: string) => {
    const index = LONGEST.indexOf(file)
    return index < 0 ? LONGEST.length : index
  }
  const of = (file: string) => durations[file] ?? Number.MAX_SAFE_INTEGER - rank(file)
  return files.toSorted((a, b) => of(b) - of(a))
}

/** A number of TEST_SEED, or a new one for TEST_SEED=random: each run then has other random input. */
function seedOf(text: string | undefined): number {
  if (text === 'random') return randomInt(2 ** 31)
  const seed = Number(text ?? DEFAULT_SEED)
  if (Number.isInteger(seed)) return seed
  throw new OperatorError(`TEST_SEED must be a whole number or random, not ${text}.`)
}

function checkRuns(text: string | undefined): void {
  if (text === undefined || Number(text) > 0) return
  throw new OperatorError(`TEST_RUNS must be a number above 0, not ${text}.`)
}

/** @throws OperatorError if a name matches no file */
function filesOf(names: string[]): string[] {
  if (names.length === 0) return longestFirst(all.sort())
  const matches = names.map((name) => [name, globSync(name)] as const)
  const [wrong] = matches.find(([, files]) => files.length === 0) ?? []
  if (wrong === undefined)
    return longestFirst([...new Set(matches.flatMap(([, files]) => files))].sort())
  const candidates = new Map(all.map((file) => [basename(file), file]))
  const similar = closestMatch(basename(wrong), [...candidates.keys()], { maxDistance: 3 })
  const advice = similar ? `; the closest is ${candidates.get(similar)}` : ''
  throw new OperatorError(`There is no test file ${wrong}${advice}.`)
}

/** Files that keep two cores busy: most of them wait at times. Those on Citus use more processes of PostgreSQL. */
const JOBS = isCitus ? 3 : 5

async function run(files: string[]): Promise<number> {
  const seed = seedOf(process.env.TEST_SEED)
  checkRuns(process.env.TEST_RUNS)
  // A file of src that throws is an error of the tests that import it.
  const filling = fillCompileCache().catch(() => {})
  const server = await startPostgres(process.env)
  try {
    await filling
    const { runFiles } = await import('./support/run-files.ts')
    const template = await createTemplate(server.url)
    const env = {
      NODE_COMPILE_CACHE: compileCache,
      // Saves 60 ms of processor time a process: Node.js does not resolve the links of 900 modules.
      NODE_PRESERVE_SYMLINKS: '1',
      ...process.env,
      TEST_SEED: String(seed),
      TEST_SERVER_URL: server.url,
      TEST_TEMPLATE: template.name,
      // The commands that the tests start would otherwise show their progress between the results.
      TERM: 'dumb',
    }
    const options = {
      jobs: JOBS,
      newProcesses: isNightly,
      print: console.log,
      signal: interrupt.signal,
    }
    const { passed, failed, durations } = await runFiles(files, env, options).finally(template.drop)
    if (failed === 0) writeDurations(durations)
    else
      console.log(
        `The random input had TEST_SEED=${seed} TEST_RUNS=${process.env.TEST_RUNS ?? DEFAULT_RUNS}`,
      )
    console.log(styleText(failed === 0 ? 'green' : 'red', `${passed} passed, ${failed} failed`))
    return failed === 0 && passed > 0 ? 0 : 1
  } finally {
    await server.stop()
  }
}

try {
  const files = filesOf(process.argv.slice(2))
  // Of this process and of the test processes.
  process.env.TMPDIR = await createTemporaryFolder()
  process.exitCode = await run(files)
} catch (error) {
  console.error(error instanceof OperatorError ? error.message : error)
  process.exitCode = 1
}
if (interrupt.signal.aborted) process.exitCode = 130
