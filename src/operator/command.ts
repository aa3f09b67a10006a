import { InvalidArgumentError } from 'commander'
import type { OperatorDatabase } from './database.ts'

export interface Io {
  /** Reads the settings of the database, and SERVICE_DATABASE_PASSWORD, also from files of secrets. */
  environment(): NodeJS.ProcessEnv
  /** Resolves when the reader has taken the text; false: it has closed its input. */
  stdout(text: string): Promise<boolean>
  stderr(text: string): void
  /** True if a person reads standard error: the command names its database. */
  isTerminal: boolean
  /** Aborted by SIGINT or SIGTERM, with the name of the signal as the reason. */
  signal: AbortSignal
  /** Runs `use` with the URL of the embedded database in a folder, for calls without DATABASE_URL. */
  withEmbedded<T>(dataDir: string, use: (url: string) => Promise<T>): Promise<T>
}

/** Result of a command. It prints the JSON or the text, if it has a text, and sets exit code 1 if it failed. */
export type Report = { text?: string; json?: object; failed?: boolean }

export interface Context extends OperatorDatabase {
  environment: NodeJS.ProcessEnv
  isJson: boolean
  stdout: Io['stdout']
  /** Writes a sentence to standard error. */
  notice(sentence: string): void
  /** Prints a report before the command ends. False: the reader has closed its input. */
  print(report: Report): Promise<boolean>
}

/** A command with a result that cannot be had again ends with this error, and changes nothing. */
export const READER_ENDED = 'The reader of the results has ended.'

/** Receives the arguments, the options and the command, as Commander passes them. Its report is printed. */
// biome-ignore lint/suspicious/noExplicitAny: their types follow from the definition of the command.
export type Action = (context: Context, ...args: any[]) => Promise<Report>

/** Returns a parser that accepts some texts. */
export const accepting =
  (isRight: (text: string) => boolean, sentence: string) => (text: string) => {
    if (isRight(text)) return text
    throw new InvalidArgumentError(sentence)
  }

export const nonEmpty = accepting((text) => text !== '', 'It must not be empty.')

/** Parses a name or label. The database stores it as short text, and tables show it. */
export function shortText(value: string): string {
  if (/\p{Cc}/u.test(value)) throw new InvalidArgumentError('Control characters are not allowed.')
  if ([...nonEmpty(value)].length > 255) throw new InvalidArgumentError('255 characters at most.')
  return value
}
