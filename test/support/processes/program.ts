import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { type Account, chooseAccount } from '../../../tools/embedded-postgres/account.ts'
import { within } from '../within.ts'

export interface ProgramOptions {
  command: string
  args: string[]
  /** Debian package of the command. */
  package: string
  /** For programs that refuse to run as root. */
  account?: Account
  environment?: Record<string, string>
  /** File descriptor for its standard output, which is otherwise part of output(). */
  stdout?: number | undefined
  /** Signal at the end of the test and of this process. */
  lastSignal?: NodeJS.Signals
}

export interface Program {
  process: ChildProcess
  /** Newest part of its standard output and standard error. */
  output(): string
  /** Waits until it has ended; returns the exit code. */
  ended(): Promise<number | null>
  /** Sends the signal and waits until it has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/**
 * Starts a server program, which ends with the test.
 * @throws Error with the name of the Debian package if the command is missing
 */
export async function startProgram(t: Test, options: ProgramOptions): Promise<Program> {
  const { command, args, account = { prefix: [] }, environment = {} } = options
  const { stdout = 'pipe', lastSignal = 'SIGKILL' } = options
  // The kernel ends it with this process, even if this process is killed.
  const setpriv = ['setpriv', '--pdeathsig', lastSignal.slice(3), '--']
  const line = [...account.prefix, ...setpriv, command, ...args]
  const [first = command, ...rest] = line
  const child = spawn(first, rest, {
    stdio: ['ignore', stdout, 'pipe'],
    env: { PATH: `${process.env.PATH}:/usr/sbin`, ...environment },
    ...account.owner,
  })
  let output = ''
  const listen = (chunk: Buffer) => {
    output = (output + chunk).slice(-KEPT_CHARACTERS)
  }
  child.stdout?.on('data', listen)
  child.stderr?.on('data', listen)
  const exited = once(child, 'exit')
  const ended = async () => {
    await within(`${command} has ended`, exited)
    return child.exitCode
  }
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    // A stopped process does not receive the signal before it continues.
    child.kill('SIGCONT')
    return await ended()
  }
  t.teardown(() => end(lastSignal))
  await once(child, 'spawn')
  await Promise.race([exited, sleep(50)])
  if (child.exitCode === NOT_FOUND)
    throw new Error(`${command} is missing: run \`.ci/packages ${options.package}\``)
  return { process: child, output: () => output, ended, end }
}

/** Exit code of setpriv if the command does not exist. */
const NOT_FOUND = 127
const KEPT_CHARACTERS = 200_000

/** Returns an account for programs that refuse to run as root. */
export const notRoot = () => chooseAccount(undefined)
