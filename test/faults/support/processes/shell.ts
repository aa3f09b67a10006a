import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { thisRelease } from './release.ts'

/** After this long, commands that have not ended hang. */
const LIMIT_MS = 120_000

/**
 * Runs commands as they are documented, from the folder of the repository, until one fails, and no
 * longer than the test. They have no terminal, so that who asks for a password reads it from the
 * standard input.
 * @returns what they told on both streams
 * @throws Error with all that, where one failed or hangs
 */
export async function runShell(
  t: Test,
  commands: string,
  environment: Record<string, string> = {},
  input = '',
): Promise<string> {
  const child = spawn('bash', ['-euc', `exec 2>&1\n${commands}`], {
    cwd: thisRelease,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    detached: true,
  })
  let running = true
  // What they started is in the same group, which has the number of its first process.
  const end = () => {
    if (running && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  t.teardown(end)
  setTimeout(end, LIMIT_MS).unref()
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const closed = once(child, 'close')
  const told = await text(child.stdout)
  await closed
  running = false
  const { exitCode, signalCode } = child
  if (exitCode !== 0) throw new Error(`ended with ${exitCode ?? signalCode}: ${told}`)
  return told
}

/** What PostgreSQL's own programs read of a connection string. */
export function clientOf(url: string): Record<string, string> {
  const { hostname, port, username, password } = new URL(url)
  return { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password }
}
