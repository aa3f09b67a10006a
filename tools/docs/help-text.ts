import { operatorHere } from '../../test/support/operator-process.ts'

export const COMMANDS_FILE = 'docs/reference/commands.txt'

/** Options of all commands, which the help of the first one has. */
const GLOBAL_OPTIONS = /Global Options:\n(?: .*\n)+\n?/

/** Returns the help of a command of the admin CLI, and that of the commands below it. */
export async function helpText(command: string[] = []): Promise<string> {
  const { stdout } = await operatorHere([...command, '--help'], {})
  const [, commands = ''] = stdout.split('\nCommands:\n')
  const names = [...commands.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name]) => String(name))
  const own = names.filter((name) => name !== 'help')
  const below = await Promise.all(own.map((name) => helpText([...command, name])))
  return [stdout.replace(GLOBAL_OPTIONS, '').trimEnd(), ...below].join('\n\n---\n\n')
}
