import { Command, CommanderError } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import type { Io, Report } from './command.ts'
import { type Progress, printable, showProgress, toJson } from './output.ts'
import { callOf, defineCommands, type Run } from './program.ts'

/** Runs a command line. @returns the exit code: 0 done, 1 failed, 2 wrong arguments, 130 SIGINT, 143 SIGTERM */
export async function operate(argv: string[], io: Io): Promise<number> {
  const { stdout, signal } = io
  const program = new Command('npm run operator --')
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
      writeErr: io.stderr,
      outputError: () => {},
    })
    .exitOverride()
  let exitCode = 0
  const notice = (sentence: string) => io.stderr(`${printable(sentence)}\n`)
  const print = async ({ text, json = {} }: Report) => {
    const { json: isJson } = program.opts()
    if (text !== undefined) await stdout(`${isJson ? toJson(json) : printable(text)}\n`)
  }
  const run: Run =
    (load, { anySchema } = { anySchema: false }) =>
    async (...args) => {
      const action = await load()
      const { readConfig } = await import('../config.ts')
      const { requireSchema, withDatabase } = await import('./database.ts')
      const { DATABASE_URL, DATA_DIR, DATABASE_POOLER } = io.environment()
      const config = readConfig({ DATABASE_URL, DATA_DIR, DATABASE_POOLER })
      let hide = () => {}
      const show = (progress: Progress) => {
        hide()
        hide = showProgress(progress)
      }
      const { jobs: sessions } = args.at(-2) as { jobs?: number }
      const options = { signal, notice, sessions, pooler: config.DATABASE_POOLER }
      const use = (url: string) =>
        withDatabase(url, options, async (database) => {
          if (!anySchema) await requireSchema(database)
          const context = { ...io, ...database, isJson: program.opts().json, notice, print, show }
          const report = await action(context, ...(args as never[])).finally(() => hide())
          await print(report)
          if (report.failed) exitCode = 1
        })
      if (config.DATABASE_URL !== undefined) await use(config.DATABASE_URL)
      else await io.withEmbedded(config.DATA_DIR, use)
    }
  /** The command of the call, as far as it exists. */
  let entered = program
  defineCommands(program, run)
  for (const group of [program, ...program.commands])
    group.hook('preSubcommand', (_group, command) => {
      entered = command
    })
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // Commander printed the version or help: on request, or because the command is missing.
    if (error instanceof CommanderError && /^commander[.](?:help|version)/.test(error.code))
      return error.exitCode === 0 ? 0 : 2
    const { exitResult } = await import('./errors.ts')
    const { json, verbose } = program.opts()
    const result = exitResult(error, verbose, signal, callOf(entered))
    if (result.sentence) notice(result.sentence)
    if (json && result.exitCode > 0) await stdout(`${toJson(result.json)}\n`)
    exitCode = result.exitCode
  }
  return exitCode
}
