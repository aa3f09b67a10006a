/**
 * Behind `npm test`: a PostgreSQL server, a migrated template on it, then all test files, or those
 * that are named: `npm test -- test/http/health.test.ts`. Those in test/faults take minutes and run only
 * by name: `npm run test:faults`.
 */
import { glob } from 'node:fs/promises'
import { runFiles } from './support/files.ts'
import { startPostgres } from './support/postgres.ts'
import { createTemplate } from './support/template.ts'

// Ctrl-C ends the test files, and then this run cleans up as always.
process.on('SIGINT', () => {})

const named = process.argv.slice(2)
const files: string[] = []
for await (const file of glob(named.length > 0 ? named : 'test/**/*.test.ts'))
  if (named.length > 0 || !file.startsWith('test/faults/')) files.push(file)

const server = await startPostgres(process.env)
try {
  const template = await createTemplate(server.url)
  const env = { ...process.env, TEST_SERVER_URL: server.url, TEST_TEMPLATE: template.name }
  const run = runFiles(files.sort(), env, (line) => console.log(line))
  const { passed, failed } = await run.finally(template.drop)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
} finally {
  await server.stop()
}
