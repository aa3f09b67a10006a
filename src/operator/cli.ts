import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { OperatorError } from '../operator-error.ts'
import { databaseName } from '../postgres/server-urls.ts'
import type { Io, Report } from './command.ts'
import { printable, toJson } from './output.ts'
import { type Call, callOf, defineCommands } from './program.ts'

/** Options of every command. */
type GlobalOptions = { json?: true; verbose?: true }

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 wrong arguments, 130 SIGINT, 143 SIGTERM */
export async function operate(argv: string[], io: Io): Promise<number> {
  const { stdout, signal } = io
  const program = new Command('operator')
    .description('Manages the data of the database in DATABASE_URL, or of the embedded one')
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON object, for scripts')
    .option('--verbose', 'name the database, and print the stack of an unexpected error')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({ writeOut: stdout, writeErr: io.stderr, outputError: () => {} })
    .addHelpText(
      'after',
      '\nFirst steps: app create, token issue, connection create, import. Each has --help with examples.',
    )
    .exitOverride()
  let exitCode = 0
  const notice = (sentence: string) => io.stderr(`${printable(sentence)}\n`)
  const print = async ({ text, json = {} }: Report) => {
    const line = program.opts<GlobalOptions>().json ? toJson(json) : text && printable(text)
    return text === undefined || (await stdout(`${line}\n`))
  }
  /** Name of the database that the command uses. */
  let database: string | undefined
  let isNamed = false
  const nameDatabase = () => {
    if (database === undefined || isNamed) return
    isNamed = true
    notice(`The database is ${database}.`)
  }
  let isEmbedded = false
  const runAction = async ({ load, acceptsAnySchema, command, args }: Call) => {
    const action = await load()
    const { readConfig } = await import('../config.ts')
    const { requireSchema, withDatabase } = await import('./database.ts')
    const environment = io.environment()
    const config = readConfig(databaseSettings(environment))
    const { json: isJson = false, verbose } = program.opts<GlobalOptions>()
    const { jobs: sessions } = command.opts<{ jobs?: number }>()
    const options = { signal, notice, sessions, pooler: config.DATABASE_POOLER }
    const use = async (url: string) => {
      database ??= databaseName(url)
      if (verbose || io.isTerminal) nameDatabase()
      await withDatabase(url, options, async (opened) => {
        if (!acceptsAnySchema) await requireSchema(opened)
        const context = { ...opened, environment, isJson, stdout, notice, print }
        const report = await action(context, ...args)
        await print(report).catch(unprinted)
        if (report.failed) exitCode = 1
      })
    }
    if (config.DATABASE_URL !== undefined) return await use(config.DATABASE_URL)
    if (environment.NODE_ENV === 'production')
      throw new OperatorError('DATABASE_URL must be set, because NODE_ENV is production.')
    isEmbedded = true
    database = `the embedded one in ${config.DATA_DIR}, because DATABASE_URL is not set`
    await io.withEmbedded(config.DATA_DIR, use)
  }
  defineCommands(program, runAction)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // Commander printed the version or help: on request, or because the command is missing.
    if (error instanceof CommanderError && /^commander[.](?:help|version)/.test(error.code))
      return error.exitCode === 0 ? 0 : 2
    const { exitResult } = await import('./errors.ts')
    const { json, verbose = false } = program.opts<GlobalOptions>()
    const below = (command: Command, word: string) =>
      command.commands.find((subcommand) => subcommand.name() === word) ?? command
    const called = argv.reduce(below, program)
    const names = called.commands.map((subcommand) => subcommand.name())
    const result = exitResult(error, verbose, signal, callOf(called), names)
    // Who has forgotten DATABASE_URL reads it first.
    if (result.isOfDatabase && isEmbedded) nameDatabase()
    if (result.sentence) notice(result.sentence)
    if (result.isOfDatabase) nameDatabase()
    // The error may be that standard output cannot be written.
    if (json && result.exitCode > 0) await stdout(`${toJson(result.json)}\n`).catch(() => {})
    return result.exitCode
  }
  return exitCode
}

/** Standard output has failed after the work of a command: its changes stay. @throws OperatorError */
async function unprinted(error: unknown): Promise<never> {
  const { explainDatabaseError } = await import('./errors.ts')
  const sentence = explainDatabaseError(error) ?? `Standard output cannot be written (${error}).`
  throw new OperatorError(`${sentence} What the command changed is stored.`)
}

/** Returns the settings of the database. An error in another setting stops no command. */
function databaseSettings(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { DATABASE_URL, DATA_DIR, DATABASE_POOLER } = environment
  const variables = Object.entries(environment).filter(([name]) => name.startsWith('PG'))
  return { ...Object.fromEntries(variables), DATABASE_URL, DATA_DIR, DATABASE_POOLER }
}
