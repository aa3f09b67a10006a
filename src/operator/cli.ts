import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { CALL, type Define, type Io, type Report, type Run } from './command.ts'
import { type Progress, printable, showProgress, toJson } from './output.ts'

const maintenance = () => import('./commands/maintenance.ts')

/** Commands with their descriptions. A call loads only the code of its command. */
const COMMANDS: Record<string, [description: string, load: () => Promise<Define>]> = {
  migrate: [
    'update the schema and configure the role of the service. With SERVICE_DATABASE_PASSWORD ' +
      'in the environment, the role can log in.',
    async () => (await maintenance()).defineMigrate,
  ],
  seed: [
    'add the sample data, with its public tokens, to a database without other apps',
    async () => (await maintenance()).defineSeed,
  ],
  demo: ['the sample data', async () => (await maintenance()).defineDemo],
  verify: [
    'compare all rows with the row counts and change numbers, which the API uses',
    async () => (await maintenance()).defineVerify,
  ],
  prune: [
    'delete what only old cursors need; they return 410',
    async () => (await maintenance()).definePrune,
  ],
  app: [
    'apps: programs that call the service',
    async () => (await import('./commands/app.ts')).defineApp,
  ],
  token: ['bearer tokens of apps', async () => (await import('./commands/token.ts')).defineToken],
  connection: [
    "connections: a user's link to a bank or broker; each belongs to one app",
    async () => (await import('./commands/connection.ts')).defineConnection,
  ],
  import: [
    'import rows: newline-delimited JSON or CSV, with the field names of the API',
    async () => (await import('./commands/import.ts')).defineImport,
  ],
  refresh: [
    'refresh many connections: one line of JSON for each, with all its lists',
    async () => (await import('./commands/refresh.ts')).defineRefresh,
  ],
}

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 wrong arguments, 130 SIGINT, 143 SIGTERM */
export async function operate(argv: string[], io: Io): Promise<number> {
  const isJson = argv.includes('--json')
  let exitCode = 0
  const run: Run = async (work, { anySchema = false, sessions } = {}) => {
    const { readConfig } = await import('../config.ts')
    const { requireSchema, withDatabase } = await import('./database.ts')
    const { stdout, signal } = io
    const { DATABASE_URL, DATA_DIR, DATABASE_POOLER } = io.environment
    const config = readConfig({ DATABASE_URL, DATA_DIR, DATABASE_POOLER })
    const notice = (sentence: string) => io.stderr(`${printable(sentence)}\n`)
    const print = async ({ text, json = {} }: Report) => {
      if (text !== undefined) await stdout(`${isJson ? toJson(json) : printable(text)}\n`)
    }
    let hide = () => {}
    const show = (progress: Progress) => {
      hide()
      hide = showProgress(progress)
    }
    const newestUrl = (url: string) => {
      io.readSecrets?.()
      return io.environment.DATABASE_URL ?? url
    }
    const options = { signal, notice, sessions, pooler: config.DATABASE_POOLER, newestUrl }
    const use = (url: string) =>
      withDatabase(url, options, async (database) => {
        if (!anySchema) await requireSchema(database)
        const context = { ...database, config, isJson, stdout, notice, print, show }
        const report = await work(context).finally(() => hide())
        await print(report)
        if (report.failed) exitCode = 1
      })
    if (config.DATABASE_URL !== undefined) await use(config.DATABASE_URL)
    else await io.withEmbedded(config.DATA_DIR, use)
  }
  /** The command of the call, as far as it exists. */
  let call = CALL
  const enter = (_group: Command, command: Command) => {
    call += ` ${command.name()}`
  }
  const program = createProgram(run, io).hook('preSubcommand', enter)
  for (const group of program.commands) group.hook('preSubcommand', enter)
  try {
    // Help of a command needs its code, too.
    const args = argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    // Commander printed the version or help: on request, or because the command is missing.
    if (error instanceof CommanderError && /^commander[.](?:help|version)/.test(error.code))
      return error.exitCode === 0 ? 0 : 2
    const { exitResult } = await import('./errors.ts')
    const result = exitResult(error, argv.includes('--verbose'), io.signal, call)
    if (result.sentence) io.stderr(`${printable(result.sentence)}\n`)
    if (isJson && result.exitCode > 0) await io.stdout(`${toJson(result.json)}\n`)
    exitCode = result.exitCode
  }
  return exitCode
}

/** Errors are thrown, and printed by the caller. */
function createProgram(run: Run, io: Io): Command {
  const program = new Command(CALL)
    .description(
      'Manages the data of the service: apps and their tokens, connections and their rows. Uses ' +
        'the database in DATABASE_URL, or the embedded one.',
    )
    .version(packageJson.version, '-V, --version', 'print the version')
    .option('--json', 'print one JSON object, for scripts (run npm with --silent)')
    .option('--verbose', 'print the stack of an unexpected error')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void io.stdout(text),
      writeErr: io.stderr,
      outputError: () => {},
    })
    .exitOverride()
    .hook('preSubcommand', async (_program, command) => {
      const define = await COMMANDS[command.name()]?.[1]()
      define?.(command, run, io)
    })
  for (const [name, [description]] of Object.entries(COMMANDS))
    program.command(name).description(description)
  return program
}
