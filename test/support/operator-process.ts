import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import { operate } from '../../src/operator/cli.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { isCitus } from './template.ts'
import { until } from './until.ts'

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
  /** Parses the output of --json. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
  json(): any
}

interface Options {
  env?: Record<string, string>
  /** Standard input. */
  input?: string
  /** Folder of another release. */
  release?: string | undefined
}

const here = join(import.meta.dirname, '../..')

/** Calls the admin CLI in a new process, with only these settings. */
export async function operator(args: string[], options: Options = {}): Promise<Ended> {
  const { child, stdout, stderr, closed } = startOperator(args, options)
  child.stdin.end(options.input ?? '')
  const { code } = await closed
  return ended(code, stdout(), stderr())
}

export interface OperatorProcess {
  child: ChildProcessWithoutNullStreams
  /** What it has written so far. */
  stdout(): string
  stderr(): string
  closed: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** Starts the admin CLI in a new process, with only these settings and an open standard input. */
export function startOperator(
  args: string[],
  { env = {}, release = here }: Omit<Options, 'input'> = {},
): OperatorProcess {
  const flags = ['--disable-warning=ExperimentalWarning', join(release, 'src/operator/main.ts')]
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env
  // Outside of the project, whose file .env is not for tests.
  const place = { cwd: tmpdir(), env: { PATH, HOME, NODE_COMPILE_CACHE, ...env } }
  const child = spawn(process.execPath, [...flags, ...args], place)
  // A command that does not read its input may exit first.
  child.stdin.on('error', () => {})
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    stdout += part
  })
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr += part
  })
  // Ends with this process, if a test does not end it.
  const kill = () => child.kill('SIGKILL')
  process.on('exit', kill)
  const closed = once(child, 'close').then(([code, signal]) => {
    process.off('exit', kill)
    return { code, signal }
  })
  return { child, stdout: () => stdout, stderr: () => stderr, closed }
}

interface HereOptions {
  /** False if the reader of standard output has ended. */
  isRead?: () => boolean
  isTerminal?: boolean
  /** Receives what the command has written to standard error so far. */
  onStderr?: (text: string) => void
}

/** Calls the admin CLI in this process: much faster, but without standard input. */
export async function operatorHere(
  args: string[],
  env: Record<string, string>,
  { isRead = () => true, onStderr = () => {}, isTerminal = false }: HereOptions = {},
): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  const code = await operate(args, {
    environment: () => env,
    stdout: async (written) => {
      stdout += written
      return isRead()
    },
    stderr: (written) => {
      stderr += written
      onStderr(stderr)
    },
    isTerminal,
    signal: new AbortController().signal,
    withEmbedded: async (folder, use) => {
      const { withEmbedded } = await import('../../tools/embedded-postgres/shared.ts')
      return await withEmbedded(folder, use, () => {})
    },
  })
  return ended(code, stdout, stderr)
}

function ended(code: number | null, stdout: string, stderr: string): Ended {
  return { code, stdout, stderr, json: () => JSON.parse(stdout) }
}

/** Waits until a statement of the operator waits for a lock, and has run for some seconds. */
export async function operatorWaits(db: Kysely<Tables>, seconds = 0): Promise<void> {
  const own = sql`datname = current_database() and application_name = 'investment-data-operator'
    and query_start <= clock_timestamp() - make_interval(secs => ${sql.lit(seconds)})`
  // On Citus, the session that waits is one of a worker, for the operator's session.
  const waits = isCitus
    ? sql`select from citus_stat_activity where wait_event_type = 'Lock'
        and global_pid in (select global_pid from citus_stat_activity where ${own})`
    : sql`select from pg_stat_activity where wait_event_type = 'Lock' and ${own}`
  await until(
    'the operator waits for a lock',
    async () => (await waits.execute(db)).rows.length > 0,
  )
}
