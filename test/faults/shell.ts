import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

/**
 * Runs commands as they are documented, from the folder of the repository, until one fails. They have no
 * terminal, so that who asks for a password reads it from the standard input.
 * @returns what they told on both streams
 * @throws Error with all that, where one failed
 */
export async function runShell(
  commands: string,
  environment: Record<string, string> = {},
  input = '',
): Promise<string> {
  const child = spawn('bash', ['-euc', `exec 2>&1\n${commands}`], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    detached: true,
  })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const closed = once(child, 'close')
  const told = await text(child.stdout)
  await closed
  if (child.exitCode !== 0) throw new Error(`exit code ${child.exitCode}: ${told}`)
  return told
}

/** What PostgreSQL's own programs read of a connection string. */
export function clientOf(url: string): Record<string, string> {
  const { hostname, port, username, password } = new URL(url)
  return { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password }
}
