/**
 * The operator's command line: `npm run operator -- --help`. Reads DATABASE_URL, DATA_DIR and
 * SERVICE_DATABASE_PASSWORD.
 */
import { readConfig } from '../config.ts'
import type { Run } from './command.ts'
import { requireSchema, withDatabase } from './database.ts'
import { outcomeOf } from './outcome.ts'
import { buildProgram } from './program.ts'

const argv = process.argv.slice(2)
const asksFor = (flag: string) => argv.includes(flag)
// An empty variable is one that was not set.
const servicePassword = process.env.SERVICE_DATABASE_PASSWORD || undefined

// Whoever reads the output, `head` for instance, may stop before its end.
process.stdout.on('error', () => {})

const run: Run = (work, { anySchema = false } = {}) =>
  withServer((url) =>
    withDatabase(url, async (database) => {
      if (!anySchema) await requireSchema(database)
      const report = await work(database, notice)
      print(asksFor('--json') ? JSON.stringify(report.json) : report.text)
      if (report.failed) process.exitCode = 1
    }),
  )

/** Lends the URL of the database: of the embedded one where no other is named, started if need be. */
async function withServer<T>(use: (url: string) => Promise<T>): Promise<T> {
  const { DATABASE_URL, DATA_DIR } = process.env
  const config = readConfig({ DATABASE_URL, DATA_DIR })
  if (config.DATABASE_URL !== undefined) return await use(config.DATABASE_URL)
  const { findRunning } = await import('../development/running.ts')
  const running = await findRunning(config.DATA_DIR)
  if (running) return await use(running)
  const { startEmbedded } = await import('../development/embedded.ts')
  const server = await startEmbedded(config.DATA_DIR)
  return await use(server.url).finally(() => server.stop())
}

function notice(sentence: string): void {
  process.stderr.write(`${sentence}\n`)
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

try {
  await buildProgram(run, servicePassword).parseAsync(argv, { from: 'user' })
} catch (error) {
  const { exitCode, sentence, json } = outcomeOf(error, asksFor('--verbose'))
  if (sentence) notice(sentence)
  if (asksFor('--json') && exitCode > 0) print(JSON.stringify(json))
  process.exitCode = exitCode
}
