import { type Command, InvalidArgumentError } from 'commander'
import type { Config } from '../config.ts'
import type { OperatorDatabase } from './database.ts'
import type { Progress } from './output.ts'

/** The process of a command. */
export interface Io {
  /** The CLI reads the settings of the database, and SERVICE_DATABASE_PASSWORD. */
  environment: NodeJS.ProcessEnv
  /** Reads the files of secrets again, and changes the environment. */
  readSecrets?: () => void
  /** Resolves when the reader has taken the text; false: it has closed its input. */
  stdout(text: string): Promise<boolean>
  stderr(text: string): void
  /** Aborted by SIGINT or SIGTERM, with the name of the signal as the reason. */
  signal: AbortSignal
  /** Runs `use` with the URL of the embedded database in a folder, for calls without DATABASE_URL. */
  withEmbedded<T>(dataDir: string, use: (url: string) => Promise<T>): Promise<T>
}

/** Result of a command. */
export interface Report {
  /** Undefined: the command has written its results itself. */
  text?: string
  /** Replaces the text with --json. */
  json?: object
  /** Sets exit code 1. */
  failed?: boolean
}

/** What a command works with. */
export interface Context extends OperatorDatabase {
  config: Config
  isJson: boolean
  stdout: Io['stdout']
  /** Writes a sentence to standard error. */
  notice(sentence: string): void
  /** Prints a report before the command ends. */
  print(report: Report): Promise<void>
  /** Shows the progress on a terminal, until the command ends. */
  show(progress: Progress): void
}

/**
 * Runs a command on the database, and prints its report. `anySchema` accepts a database with missing migrations. For
 * `sessions`, see withDatabase().
 */
export type Run = (
  work: (context: Context) => Promise<Report>,
  options?: { anySchema?: boolean; sessions?: number },
) => Promise<void>

/** Adds arguments, options and subcommands to a command. */
export type Define = (command: Command, run: Run, io: Io) => void

export const CALL = 'npm run operator --'

export function examples(...lines: string[]): string {
  return `\nFor example:\n${lines.map((line) => `  ${CALL} ${line}`).join('\n')}\n`
}

export function nonEmpty(value: string): string {
  if (value === '') throw new InvalidArgumentError('It must not be empty.')
  return value
}

/** Parses a name or label. The database stores it as short text, and tables show it. */
export function shortText(value: string): string {
  if (/\p{Cc}/u.test(value)) throw new InvalidArgumentError('Control characters are not allowed.')
  if ([...nonEmpty(value)].length > 255) throw new InvalidArgumentError('255 characters at most.')
  return value
}

const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Returns the seconds of a duration such as `90d`, `12h` or `30m`; NaN for another text. */
export function secondsOf(duration: string): number {
  const [, count, unit = ''] = /^([0-9]{1,10})([smhdw])$/.exec(duration) ?? []
  return Number(count) * (SECONDS[unit] ?? Number.NaN)
}

export function wholeNumber(minimum: number, maximum: number) {
  return (value: string): number => {
    const number = /^[0-9]+$/.test(value) ? Number(value) : Number.NaN
    if (number >= minimum && number <= maximum) return number
    throw new InvalidArgumentError(`It must be a whole number from ${minimum} to ${maximum}.`)
  }
}
