import { Command, CommanderError } from 'commander'
import { readConfig } from '../config.ts'
import { OperatorError } from '../operator-error.ts'
import { CALL, type Run } from './command.ts'
import { addAppCommands } from './commands/app.ts'
import { addConnectionCommands } from './commands/connection.ts'
import { addImportCommands } from './commands/import.ts'
import { addMaintenanceCommands } from './commands/maintenance.ts'
import { addTokenCommands } from './commands/token.ts'
import { requireSchema, withDatabase } from './database.ts'
import { explainDatabaseError, ImportRejected, UsageError } from './errors.ts'

interface Options {
  /** Lets the role of the service log in, when `migrate` is called. */
  servicePassword: string | undefined
  stdout(text: string): void
  stderr(text: string): void
}

/** The command line: what can be called, and its help. Errors are thrown, and told by the caller. */
function buildProgram(run: Run, { servicePassword, stdout, stderr }: Options): Command {
  const program = new Command()
    .name(CALL)
    .description(
      'Writes what the service reads: apps and their tokens, connections and their rows. On the ' +
        'database in DATABASE_URL, or else on the embedded one.',
    )
    .option('--json', 'print one JSON object, for scripts (and run npm with --silent)')
    .option('--verbose', 'tell of an unexpected error where it comes from')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: stdout, writeErr: stderr, outputError: () => {} })
    .exitOverride()
  addMaintenanceCommands(program, run, servicePassword)
  addAppCommands(program, run)
  addTokenCommands(program, run)
  addConnectionCommands(program, run)
  addImportCommands(program, run)
  return program
}

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

/** How a command ended that did not do its work. */
interface Outcome {
  /** 2 where the command was not called as it wants to be, 1 for all else. */
  exitCode: number
  sentence: string
  json: object
}

/** What an error means for the person, or the script, that called the command. */
export function outcomeOf(error: unknown, verbose: boolean): Outcome {
  // Help was asked for and shown, or was shown because there was no command.
  if (error instanceof CommanderError && error.code.startsWith('commander.help')) {
    return { exitCode: error.exitCode === 0 ? 0 : 2, sentence: '', json: {} }
  }
  if (error instanceof CommanderError || error instanceof UsageError) {
    return outcome(2, `${usageSentence(error.message)} See ${CALL} --help.`)
  }
  if (error instanceof ImportRejected) {
    const { faults, total } = error
    return { exitCode: 1, sentence: error.message, json: { error: 'rejected', faults, total } }
  }
  if (error instanceof OperatorError) return outcome(1, error.message)
  return outcome(1, explainDatabaseError(error) ?? unexpected(error, verbose))
}

function outcome(exitCode: number, sentence: string): Outcome {
  return { exitCode, sentence, json: { error: sentence } }
}

/** Commander's messages, as a sentence each. */
function usageSentence(message: string): string {
  const text = message.replace(/^error: /, '').replaceAll(/\s+/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/([^.?)])$/, '$1.')
}

function unexpected(error: unknown, verbose: boolean): string {
  if (verbose && error instanceof Error) return error.stack ?? error.message
  const message = error instanceof Error ? error.message : String(error)
  return `Something unexpected went wrong: ${message} (--verbose tells where).`
}
