import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Test } from 'tap'

export interface ProgramOptions {
  cwd?: string
  env?: Record<string, string | undefined>
  /** Limit in ms. Default: two minutes. */
  timeout?: number
}

/**
 * Runs a program in a new process and returns its standard output.
 * @throws Error with its exit code and its output if it fails
 */
export async function run(command: string, args: string[], options: ProgramOptions = {}) {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, HOME, NODE_COMPILE_CACHE, ...options.env }
  const limits = { maxBuffer: 50_000_000, timeout: options.timeout ?? 120_000 }
  const ended = await promisify(execFile)(command, args, { ...options, env, ...limits }).catch(
    ({ message, code, stdout = '', stderr = '' }) => {
      throw Object.assign(new Error(`${message}\n${stdout}${stderr}`), { code })
    },
  )
  return ended.stdout
}

/** Fails the test file with one sentence if a program does not run. Call it before the first test. */
export async function needsProgram(
  t: Test,
  name: string,
  debianPackage: string,
  args = ['--version'],
): Promise<void> {
  try {
    await run(name, args)
  } catch (error) {
    const [reason] = String(error).split('\n')
    const advice = `install it (Debian: apt install ${debianPackage})`
    t.fail(`This file needs ${name}: ${advice}. (${reason})`, { at: null, stack: '' })
    t.end()
    process.exit(1)
  }
}
