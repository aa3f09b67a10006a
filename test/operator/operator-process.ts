import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { operate } from '../../src/operator/cli.ts'

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
  /** What --json printed. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
  json(): any
}

interface How {
  env?: Record<string, string>
  /** Standard input. */
  input?: string
  /** The folder of a release, where it is not this one. */
  release?: string | undefined
}

const here = join(import.meta.dirname, '../..')

/** Calls the operator's command line in a process of its own, with no settings but those given. */
export async function operator(args: string[], how: How = {}): Promise<Ended> {
  const { env = {}, input = '', release = here } = how
  const flags = ['--disable-warning=ExperimentalWarning', join(release, 'src/operator/main.ts')]
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(process.execPath, [...flags, ...args], { env: { PATH, HOME, ...env } })
  // A command that does not read its input may be gone before it is written.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const closed = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  await closed
  return ended(child.exitCode, stdout, stderr)
}

/** The same within this process, which is many times faster and has no standard input. */
export async function operatorHere(args: string[], env: Record<string, string>): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  const code = await operate(args, {
    environment: env,
    stdout: (told) => {
      stdout += told
    },
    stderr: (told) => {
      stderr += told
    },
    withEmbedded: () => Promise.reject(new Error('DATABASE_URL is missing')),
  })
  return ended(code, stdout, stderr)
}

function ended(code: number | null, stdout: string, stderr: string): Ended {
  return { code, stdout, stderr, json: () => JSON.parse(stdout) }
}
