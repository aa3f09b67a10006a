import os from 'node:os'
import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { readConfig } from '../config.ts'
import { OperatorError } from '../operator-error.ts'
import { CALL, type Run } from './command.ts'
import { addAppCommands } from './commands/app.ts'
import { addConnectionCommands } from './commands/connection.ts'
import { addImportCommands } from './commands/import.ts'
import { addMaintenanceCommands } from './commands/maintenance.ts'
import { addRefreshCommand } from './commands/refresh.ts'
import { addTokenCommands } from './commands/token.ts'
import { requireSchema, withDatabase } from './database.ts'
import { explainDatabaseError, ImportRejected, UsageError } from './errors.ts'
import { escaped, printable } from './output.ts'

/** Environment and output of a call. */
export interface Io {
  /** The CLI reads DATABASE_URL, DATA_DIR, DATABASE_GENERIC_PLANS, DATABASE_POOLER, DATABASE_PREPARE,
   * SERVICE_DATABASE_PASSWORD and CONNECTION_TOKEN. */
  environment: NodeJS.ProcessEnv
  /** Resolves when the reader has taken the text; false: it has closed its input. */
  stdout(text: string): Promise<boolean>
  stderr(text: string): void
  /** Aborted by SIGINT or SIGTERM, with the name of the signal as the reason. */
  signal: AbortSignal
  /** Runs `use` with the URL of the embedded database in a folder, for calls without DATABASE_URL. */
  withEmbedded<T>(dataDir: string, use: (url: string) => Promise<T>): Promise<T>
}

/**
 * Runs a command line.
 * @returns the exit code: 0 done, 1 failed, 2 wrong arguments, 130 SIGINT, 143 SIGTERM
 */
export async function operate(argv: string[], io: Io): Promise<number> {
  const isJson = argv.includes('--json')
  let exitCode = 0
  const run: Run = async (work, { anySchema = false, sessions } = {}) => {
    const { DATABASE_URL, DATA_DIR, ...environment } = io.environment
    const { DATABASE_GENERIC_PLANS, DATABASE_POOLER, DATABASE_PREPARE } = environment
    const how = { DATABASE_GENERIC_PLANS, DATABASE_POOLER, DATABASE_PREPARE }
    const config = readConfig({ DATABASE_URL, DATA_DIR, ...how })
    const { DATABASE_POOLER: pooler } = config
    const notice = (sentence: string) => io.stderr(`${printable(sentence)}\n`)
    const use = (url: string) =>
      withDatabase(url, { signal: io.signal, notice, sessions, pooler }, async (database) => {
        if (!anySchema) await requireSchema(database)
        const report = await work(database, notice, config)
        if (report.text !== undefined)
          await io.stdout(
            `${isJson ? escaped(JSON.stringify(report.json)) : printable(report.text)}\n`,
          )
        if (report.failed) exitCode = 1
      })
    if (config.DATABASE_URL !== undefined) await use(config.DATABASE_URL)
    else await io.withEmbedded(config.DATA_DIR, use)
  }
  try {
    await buildProgram(run, io).parseAsync(argv, { from: 'user' })
  } catch (error) {
    const result = exitResult(error, argv.includes('--verbose'), io.signal)
    if (result.sentence) io.stderr(`${printable(result.sentence)}\n`)
    if (isJson && result.exitCode > 0) await io.stdout(`${escaped(JSON.stringify(result.json))}\n`)
    exitCode = result.exitCode
  }
  return exitCode
}

/** Commands and their help. Errors are thrown, and printed by the caller. */
function buildProgram(run: Run, { environment, stdout, stderr }: Io): Command {
  const program = new Command()
    .name(CALL)
    .description(
      'Manages the data of the service: apps and their tokens, connections and their rows. Uses ' +
        'the database in DATABASE_URL, or the embedded one.',
    )
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON object, for scripts (run npm with --silent)')
    .option('--verbose', 'print the stack of an unexpected error')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void stdout(text),
      writeErr: stderr,
      outputError: () => {},
    })
    .exitOverride()
  // An empty variable counts as not set.
  addMaintenanceCommands(program, run, environment.SERVICE_DATABASE_PASSWORD || undefined)
  addAppCommands(program, run)
  addTokenCommands(program, run)
  addConnectionCommands(program, run, stdout)
  addImportCommands(program, run, environment.CONNECTION_TOKEN || undefined)
  addRefreshCommand(program, run, stdout)
  return program
}

/** Result of a command that failed, or that only printed help. */
interface ExitResult {
  exitCode: number
  sentence: string
  json: object
}

export function exitResult(error: unknown, verbose: boolean, signal: AbortSignal): ExitResult {
  if (signal.aborted) {
    const sentence = 'Interrupted; unfinished changes are rolled back.'
    const code = 128 + os.constants.signals[signal.reason as NodeJS.Signals]
    return failed(code, error instanceof OperatorError ? error.message : sentence)
  }
  // Commander printed the version or help: on request, or because the command is missing.
  if (error instanceof CommanderError && /^commander[.](?:help|version)/.test(error.code)) {
    return { exitCode: error.exitCode === 0 ? 0 : 2, sentence: '', json: {} }
  }
  if (error instanceof CommanderError || error instanceof UsageError) {
    return failed(2, `${usageSentence(error.message)} See ${CALL} --help.`)
  }
  if (error instanceof ImportRejected) {
    const { message, problems: faults, total } = error
    return { exitCode: 1, sentence: message, json: { error: 'rejected', faults, total } }
  }
  if (error instanceof OperatorError) return failed(1, error.message)
  return failed(1, explainDatabaseError(error) ?? unexpected(error, verbose))
}

function failed(exitCode: number, sentence: string): ExitResult {
  return { exitCode, sentence, json: { error: sentence } }
}

/** Turns a message of Commander into a sentence. */
function usageSentence(message: string): string {
  const text = message.replace(/^error: /, '').replaceAll(/\s+/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/([^.?)])$/, '$1.')
}

function unexpected(error: unknown, verbose: boolean): string {
  if (verbose && error instanceof Error) return error.stack ?? error.message
  const message = error instanceof Error ? error.message : String(error)
  return `Unexpected error: ${message} (--verbose prints its stack).`
}
