import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { CALL, type Io, type Report, type Run } from './command.ts'
import { printable, toJson } from './output.ts'

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 wrong arguments, 130 SIGINT, 143 SIGTERM */
export async function operate(argv: string[], io: Io): Promise<number> {
  const isJson = argv.includes('--json')
  let exitCode = 0
  const run: Run = async (work, { anySchema = false, sessions } = {}) => {
    const { operatorSettings, readConfig } = await import('../config.ts')
    const { requireSchema, withDatabase } = await import('./database.ts')
    const config = readConfig(io.environment, operatorSettings)
    const { DATABASE_POOLER: pooler } = config
    const notice = (sentence: string) => io.stderr(`${printable(sentence)}\n`)
    const print = async ({ text, json }: Report) => {
      if (text !== undefined) await io.stdout(`${isJson ? toJson(json) : printable(text)}\n`)
    }
    const newestUrl = (url: string) => {
      io.readSecrets?.()
      return io.environment.DATABASE_URL ?? url
    }
    const options = { signal: io.signal, notice, sessions, pooler, newestUrl }
    const use = (url: string) =>
      withDatabase(url, options, async (database) => {
        if (!anySchema) await requireSchema(database)
        const report = await work(database, notice, config, print)
        await print(report)
        if (report.failed) exitCode = 1
      })
    if (config.DATABASE_URL !== undefined) await use(config.DATABASE_URL)
    else await io.withEmbedded(config.DATA_DIR, use)
  }
  let program: Command | undefined
  try {
    program = await buildProgram(argv, run, io)
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // Commander printed the version or help: on request, or because the command is missing.
    if (error instanceof CommanderError && /^commander[.](?:help|version)/.test(error.code))
      return error.exitCode === 0 ? 0 : 2
    const { exitResult } = await import('./errors.ts')
    const result = exitResult(error, argv.includes('--verbose'), io.signal, callOf(program, argv))
    if (result.sentence) io.stderr(`${printable(result.sentence)}\n`)
    if (isJson && result.exitCode > 0) await io.stdout(`${toJson(result.json)}\n`)
    exitCode = result.exitCode
  }
  return exitCode
}

/** Returns the call of the command that the arguments name, as far as it exists. */
function callOf(program: Command | undefined, argv: string[]): string {
  let [call, command] = [CALL, program]
  for (const word of argv.filter((word) => !word.startsWith('-'))) {
    command = command?.commands.find((each) => each.name() === word)
    if (command === undefined) break
    call += ` ${word}`
  }
  return call
}

type Load = () => Promise<{ addCommands(program: Command, run: Run, io: Io): void }>

const maintenance: Load = () => import('./commands/maintenance.ts')

/** Commands with their descriptions. A call loads only the code of its command. */
const COMMANDS: Record<string, [description: string, load: Load]> = {
  migrate: [
    'update the schema and configure the role of the service. With SERVICE_DATABASE_PASSWORD ' +
      'in the environment, the role can log in.',
    maintenance,
  ],
  seed: [
    'add the sample data, with its public tokens, to a database without other apps',
    maintenance,
  ],
  demo: ['the sample data', maintenance],
  verify: [
    'compare all rows with the row counts and change numbers, which the API uses',
    maintenance,
  ],
  prune: ['delete what only old cursors need; they return 410', maintenance],
  app: ['apps: programs that call the service', () => import('./commands/app.ts')],
  token: ['bearer tokens of apps', () => import('./commands/token.ts')],
  connection: [
    "connections: a user's link to a bank or broker; each belongs to one app",
    () => import('./commands/connection.ts'),
  ],
  import: [
    'import rows: newline-delimited JSON or CSV, with the field names of the API',
    () => import('./commands/import.ts'),
  ],
  refresh: [
    'refresh many connections: one line of JSON for each, with all its lists',
    () => import('./commands/refresh.ts'),
  ],
}

/** Commands and their help. Errors are thrown, and printed by the caller. */
async function buildProgram(argv: string[], run: Run, io: Io): Promise<Command> {
  const { stdout, stderr } = io
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
  const name = argv.find((word) => Object.hasOwn(COMMANDS, word)) ?? ''
  const module = await COMMANDS[name]?.[1]()
  module?.addCommands(program, run, io)
  for (const [name, [description]] of Object.entries(COMMANDS)) {
    const command = program.commands.find((each) => each.name() === name) ?? program.command(name)
    command.description(description)
  }
  return program
}
