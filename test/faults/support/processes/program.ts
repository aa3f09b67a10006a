import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { type Account, chooseAccount } from '../../../../tools/embedded-postgres/account.ts'

export interface ProgramOptions {
  command: string
  args: string[]
  /** The Debian package that brings the command. */
  package: string
  /** For programs that refuse to run as root. */
  account?: Account
  environment?: Record<string, string>
  /** What it ends with, with the test and with this process. */
  lastSignal?: NodeJS.Signals
}

/** A server program, and what it said so far on both of its streams. */
export interface Program {
  process: ChildProcess
  said(): string
  /** Sends the signal and waits for the end. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/**
 * Starts a server program, which ends with the test, whatever way that ends.
 * @throws Error that names the Debian package where the command is missing
 */
export async function startProgram(t: Test, options: ProgramOptions): Promise<Program> {
  const { command, args, account = { prefix: [] }, environment = {} } = options
  const { lastSignal = 'SIGKILL' } = options
  // The kernel ends it with this process, whatever way that ends.
  const fate = ['setpriv', '--pdeathsig', lastSignal.slice(3), '--']
  const line = [...account.prefix, ...fate, command, ...args]
  const [first = command, ...rest] = line
  const child = spawn(first, rest, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: `${process.env.PATH}:/usr/sbin`, ...environment },
    ...account.owner,
  })
  let output = ''
  const listen = (chunk: Buffer) => {
    output = (output + chunk).slice(-KEPT)
  }
  child.stdout.on('data', listen)
  child.stderr.on('data', listen)
  const exited = once(child, 'exit')
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    // One that was made to hang could not hear that it has to end.
    child.kill('SIGCONT')
    await exited
    return child.exitCode
  }
  t.teardown(() => end(lastSignal))
  await once(child, 'spawn')
  await Promise.race([exited, sleep(50)])
  if (child.exitCode === NOT_FOUND)
    throw new Error(`${command} is missing: run \`.ci/packages ${options.package}\``)
  return { process: child, said: () => output, end }
}

/** What setpriv ends with where there is no such command. */
const NOT_FOUND = 127
const KEPT = 200_000

/** The account for programs that refuse to run as root. */
export const notRoot = () => chooseAccount(undefined)
