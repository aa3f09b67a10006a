/**
 * Runs `npm test`: starts a PostgreSQL server, migrates a template database, and runs all test files or
 * the named ones: `npm test -- test/http/health.test.ts`. The tests in test/faults take minutes and run
 * by name only: `npm run test:faults`.
 */
import { glob } from 'node:fs/promises'
import { startPostgres } from './support/postgres.ts'
import { runFiles } from './support/run-files.ts'
import { createTemplate } from './support/template.ts'

// Ctrl-C ends the test files; this process then cleans up.
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
