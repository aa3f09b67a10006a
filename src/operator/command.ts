import { type Command, InvalidArgumentError } from 'commander'
import type { OperatorDatabase } from './database.ts'

/** What a command has to say. */
export interface Report {
  /** For a person, on standard output. */
  text: string
  /** For a script that asked for --json, on standard output in its stead. */
  json: object
  /** Whether the command did not reach what it was for: the exit code is 1 then. */
  failed?: boolean
}

/** Runs a command on the database, and prints its report. */
export type Run = (
  work: (database: OperatorDatabase, notice: (sentence: string) => void) => Promise<Report>,
  options?: {
    /** Whether the command can do with a schema that is behind. */
    anySchema?: boolean
  },
) => Promise<void>

/** How the operator is called, for help and messages. */
export const CALL = 'npm run operator --'

/** Ends the help of a command with lines to copy. */
export function withExamples(command: Command, ...examples: string[]): Command {
  const lines = examples.map((example) => `  ${CALL} ${example}`)
  return command.addHelpText('after', `\nFor example:\n${lines.join('\n')}\n`)
}

/** An option or argument that may not be empty. */
export function nonEmpty(value: string): string {
  if (value === '') throw new InvalidArgumentError('It may not be empty.')
  return value
}

/** An option or argument that is stored as a short text, and shown in a line of a table. */
export function shortText(value: string): string {
  if (/\p{Cc}/u.test(value)) throw new InvalidArgumentError('It may not hold control characters.')
  if ([...nonEmpty(value)].length > 255) throw new InvalidArgumentError('255 characters at most.')
  return value
}
