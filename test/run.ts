/**
 * Runs `npm test`: starts a PostgreSQL server, migrates a template database, and runs all test files or
 * the named ones: `npm test -- test/http/health.test.ts`. Tests that take minutes or need other programs run by
 * name only, such as `npm run test:load`.
 */
import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { closestMatch } from 'leven'
import { OperatorError } from '../src/operator-error.ts'
import { startPostgres } from './support/postgres.ts'
import { runFiles } from './support/run-files.ts'
import { createTemplate, isCitus } from './support/template.ts'

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

/** Folders of other commands: test/README.md. */
const OTHER = /^test\/(repository|clients|load|servers)\//

const all = globSync('test/**/*.test.ts').filter((file) => !OTHER.test(file))
/** The longest files, and the folders of others. They run first, so that no long file is left alone at the end. */
const LONGEST = ['test/operator/operator-migrate', 'test/settings/', 'test/seeds/', 'test/openapi/']

/** @throws OperatorError if a name matches no file */
function filesOf(names: string[]): string[] {
  if (names.length === 0) {
    const isLong = (file: string) => LONGEST.some((folder) => file.startsWith(folder))
    return all.sort().sort((a, b) => Number(isLong(b)) - Number(isLong(a)))
  }
  const matches = names.map((name) => [name, globSync(name)] as const)
  const [wrong] = matches.find(([, files]) => files.length === 0) ?? []
  if (wrong === undefined) return [...new Set(matches.flatMap(([, files]) => files))].sort()
  const candidates = new Map(all.map((file) => [basename(file), file]))
  const similar = closestMatch(basename(wrong), [...candidates.keys()], { maxDistance: 3 })
  const advice = similar ? `; the closest is ${candidates.get(similar)}` : ''
  throw new OperatorError(`There is no test file ${wrong}${advice}.`)
}

/**
 * Four files keep two cores busy; three left them idle for 15 % of the time. Tests of load and of servers, and Citus,
 * cut networks and measure rates, so they run two.
 */
const jobsFor = (files: string[]) =>
  isCitus || files.some((file) => /^test\/(load|servers)\//.test(file)) ? 2 : 4

async function run(files: string[]): Promise<number> {
  const server = await startPostgres(process.env)
  try {
    const template = await createTemplate(server.url)
    const env = {
      NODE_COMPILE_CACHE: compileCache,
      // Saves 60 ms of processor time a process: Node.js does not resolve the links of 900 modules.
      NODE_PRESERVE_SYMLINKS: '1',
      ...process.env,
      TEST_SERVER_URL: server.url,
      TEST_TEMPLATE: template.name,
    }
    const options = { jobs: jobsFor(files), print: console.log, signal: interrupt.signal }
    const { passed, failed } = await runFiles(files, env, options).finally(template.drop)
    console.log(`${passed} passed, ${failed} failed`)
    return failed === 0 && passed > 0 ? 0 : 1
  } finally {
    await server.stop()
  }
}

try {
  process.exitCode = await run(filesOf(process.argv.slice(2)))
} catch (error) {
  console.error(error instanceof OperatorError ? error.message : error)
  process.exitCode = 1
}
if (interrupt.signal.aborted) process.exitCode = 130
