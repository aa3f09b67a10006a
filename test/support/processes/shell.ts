import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { thisRelease } from './release.ts'

/** Time after which commands hang. */
const LIMIT_MS = 120_000

/**
 * Runs documented commands in the folder of the repository until one fails. They have no terminal, so
 * programs read passwords from the standard input.
 * @returns their standard output and standard error
 * @throws Error with this output if a command fails or hangs
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
  // Their child processes belong to the same process group.
  const end = () => {
    if (running && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  }
  t.teardown(end)
  setTimeout(end, LIMIT_MS).unref()
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const closed = once(child, 'close')
  const output = await text(child.stdout)
  await closed
  running = false
  const { exitCode, signalCode } = child
  if (exitCode !== 0) throw new Error(`ended with ${exitCode ?? signalCode}: ${output}`)
  return output
}

/** Environment variables of libpq for a connection string. */
export function libpqVariables(url: string): Record<string, string> {
  const { hostname, port, username, password } = new URL(url)
  return { PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password }
}
