import { InvalidArgumentError } from 'commander'
import type { OperatorConfig } from '../config.ts'
import type { OperatorDatabase } from './database.ts'

/** Result of a command, for standard output. */
export interface Report {
  /** Undefined: the command has written its results itself. */
  text?: string
  /** Replaces the text with --json. */
  json: object
  /** Sets exit code 1. */
  failed?: boolean
}

/** Runs a command on the database, and prints its report. */
export type Run = (
  work: (
    database: OperatorDatabase,
    notice: (sentence: string) => void,
    config: OperatorConfig,
  ) => Promise<Report>,
  /**
   * `anySchema`: accepts a database with missing migrations. `sessions`: see withDatabase().
   */
  options?: { anySchema?: boolean; sessions?: number },
) => Promise<void>

/** Call of the operator, for help and messages. */
export const CALL = 'npm run operator --'

/** Examples for the end of a command's help. */
export function examples(...lines: string[]): string {
  return `\nFor example:\n${lines.map((line) => `  ${CALL} ${line}`).join('\n')}\n`
}

/** Parses an option or argument that must not be empty. */
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

export const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

export function wholeNumber(value: string): number {
  if (/^\d{1,9}$/.test(value) && Number(value) >= 1) return Number(value)
  throw new InvalidArgumentError('It must be a whole number from 1 on.')
}
