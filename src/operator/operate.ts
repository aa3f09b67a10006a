import { readConfig } from '../config.ts'
import type { Run } from './command.ts'
import { requireSchema, withDatabase } from './database.ts'
import { outcomeOf } from './outcome.ts'
import { buildProgram } from './program.ts'

/** What a call has around it. */
export interface Surroundings {
  /** DATABASE_URL, DATA_DIR and SERVICE_DATABASE_PASSWORD are read. */
  environment: NodeJS.ProcessEnv
  stdout(text: string): void
  stderr(text: string): void
  /** Lends the URL of the embedded database of a folder, for when no other is named. */
  withEmbedded<T>(dataDir: string, use: (url: string) => Promise<T>): Promise<T>
}

/**
 * Does what a command line says.
 * @returns the exit code: 0 done, 1 failed, 2 called in a way that it does not know
 */
export async function operate(argv: string[], around: Surroundings): Promise<number> {
  const { environment, stdout, stderr } = around
  const isJson = argv.includes('--json')
  let exitCode = 0
  const run: Run = (work, { anySchema = false } = {}) =>
    withServer(around, (url) =>
      withDatabase(url, async (database) => {
        if (!anySchema) await requireSchema(database)
        const report = await work(database, (sentence) => stderr(`${sentence}\n`))
        stdout(`${isJson ? JSON.stringify(report.json) : report.text}\n`)
        if (report.failed) exitCode = 1
      }),
    )
  // An empty variable is one that was not set.
  const servicePassword = environment.SERVICE_DATABASE_PASSWORD || undefined
  const program = buildProgram(run, { servicePassword, stdout, stderr })
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    const outcome = outcomeOf(error, argv.includes('--verbose'))
    if (outcome.sentence) stderr(`${outcome.sentence}\n`)
    if (isJson && outcome.exitCode > 0) stdout(`${JSON.stringify(outcome.json)}\n`)
    exitCode = outcome.exitCode
  }
  return exitCode
}

async function withServer<T>(
  { environment: { DATABASE_URL, DATA_DIR }, withEmbedded }: Surroundings,
  use: (url: string) => Promise<T>,
): Promise<T> {
  const config = readConfig({ DATABASE_URL, DATA_DIR })
  if (config.DATABASE_URL !== undefined) return await use(config.DATABASE_URL)
  return await withEmbedded(config.DATA_DIR, use)
}
