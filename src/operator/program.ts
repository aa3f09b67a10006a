import { Command } from 'commander'
import { CALL, type Run } from './command.ts'
import { addAppCommands } from './commands/app.ts'
import { addConnectionCommands } from './commands/connection.ts'
import { addImportCommands } from './commands/import.ts'
import { addMaintenanceCommands } from './commands/maintenance.ts'
import { addTokenCommands } from './commands/token.ts'

interface Options {
  /** Lets the role of the service log in, when `migrate` is called. */
  servicePassword: string | undefined
  stdout(text: string): void
  stderr(text: string): void
}

/** The command line: what can be called, and its help. Errors are thrown, and told by the caller. */
export function buildProgram(run: Run, { servicePassword, stdout, stderr }: Options): Command {
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
