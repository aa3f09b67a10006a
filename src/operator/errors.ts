import os from 'node:os'
import { CommanderError } from 'commander'
import type pg from 'pg'
import { errorMessage } from '../error-message.ts'
import { NotInDatabase, OperatorError } from '../operator-error.ts'
import { ServerFailed } from '../postgres/failures.ts'
import { escaped, pluralize } from './output.ts'

/** What pg and Node.js tell about an error; empty if they do not. */
type Facts = Record<'code' | 'syscall' | 'message' | 'detail', string>

/** What is known of an error, and the sentence about it. Each pattern that is given must match. */
interface Explanation {
  /** Pattern of the SQLSTATE, or of the code of Node.js. */
  code?: RegExp
  syscall?: RegExp
  message?: RegExp
  sentence(facts: Facts): string
}

/** The errors of pg itself have no code. */
const NO_CODE = /^$/
const broken = () => 'The connection to PostgreSQL broke; unfinished changes are rolled back.'
const unreachable = (reason: string) =>
  `PostgreSQL cannot be reached at the address in DATABASE_URL: ${reason}.`
const parentDeleted = () =>
  'Another session deleted the parent row at the same time; nothing was changed.'

/** Returns the value that another row has already. */
function takenValue({ detail }: Facts): string {
  return /=\((.*)\)/s.exec(detail)?.[1] ?? ''
}

/** The first one that matches explains an error. */
const EXPLANATIONS: Explanation[] = [
  // Citus names a constraint only in the message, with the number of a shard.
  {
    message: /\bapp_name_key/,
    sentence: (facts) =>
      `The app ${takenValue(facts)} already exists: \`app list\` shows all apps.`,
  },
  {
    message: /\bapp_client_id_key/,
    sentence: (facts) => `Another app already has the client id ${takenValue(facts)}.`,
  },
  // Two generated tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
  {
    message: /\bconnection_pkey/,
    sentence: () =>
      'A connection with this token exists already: a token is unique in the whole database.',
  },
  {
    code: /^28P01/,
    sentence: () => 'PostgreSQL rejects the user or the password in DATABASE_URL.',
  },
  {
    code: /^28/,
    sentence: ({ message }) =>
      `PostgreSQL rejects this user, database or address (see its pg_hba.conf) (${message}).`,
  },
  {
    code: /^3D000/,
    sentence: () => 'The database in DATABASE_URL does not exist: create it first.',
  },
  {
    code: /^22P05/,
    sentence: ({ message }) =>
      `The encoding of the database cannot store this text (${message}): move the rows to a database with UTF8.`,
  },
  {
    code: /^25006/,
    sentence: () => 'The database is read-only: it is a standby, or the role may not write.',
  },
  {
    code: /^42P01/,
    sentence: () => 'The schema is outdated: run `operator migrate` first.',
  },
  {
    code: /^42501/,
    sentence: ({ message }) =>
      `The role in DATABASE_URL may not do this: use the one that owns the tables (${message}).`,
  },
  {
    code: /^53100/,
    sentence: () => 'The disk of PostgreSQL is full; nothing was changed.',
  },
  {
    code: /^53300/,
    sentence: () => 'PostgreSQL has no free connection: try again later.',
  },
  {
    code: /^53/,
    sentence: ({ message }) => `PostgreSQL is out of resources (${message}).`,
  },
  {
    code: /^55P03/,
    sentence: () => 'Another session holds a lock that this command needs: try again later.',
  },
  {
    code: /^57014/,
    sentence: () => 'The statement was cancelled; nothing was changed.',
  },
  {
    code: /^57P03/,
    sentence: () => 'PostgreSQL is starting or stopping: try again later.',
  },
  {
    code: /^23505/,
    sentence: () =>
      'Another session wrote the same rows at the same time; nothing was changed: try again.',
  },
  { code: /^23503/, sentence: parentDeleted },
  // Citus copies many rows to a worker, and returns the message of the worker without its SQLSTATE.
  { message: /violates foreign key constraint/, sentence: parentDeleted },
  {
    code: /^40P01/,
    sentence: () => 'Deadlock with another session; nothing was changed: try again.',
  },
  { code: /^(57|08|ECONNRESET|EPIPE)/, sentence: broken },
  { code: NO_CODE, message: /Connection (ended|terminated)|not queryable/, sentence: broken },
  {
    code: /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS_CERT)/,
    sentence: ({ message }) => `The certificate of PostgreSQL cannot be verified (${message}).`,
  },
  {
    code: /^ENOSPC/,
    syscall: /^write/,
    sentence: () => 'Standard output cannot be written: its disk is full.',
  },
  {
    syscall: /^(connect|read|getaddrinfo)$/,
    sentence: ({ message }) => unreachable(message),
  },
  { code: NO_CODE, message: /timeout/, sentence: () => unreachable('it does not respond') },
  {
    message: /password must be/,
    sentence: () => 'PostgreSQL requires a password, and DATABASE_URL has none.',
  },
  {
    message: /does not support SSL/,
    sentence: () => 'DATABASE_URL requires TLS, which this PostgreSQL does not support.',
  },
]

/** Explains a foreseeable error of PostgreSQL or of the connection to it, in one sentence. */
export function explainDatabaseError(error: unknown): string | undefined {
  if (error instanceof ServerFailed) return `${error.message}.`
  // A server with several addresses fails with one error for each.
  if (error instanceof AggregateError) return explainDatabaseError(error.errors[0])
  const found: Partial<pg.DatabaseError & NodeJS.ErrnoException> = Object(error)
  const { code = '', syscall = '', detail = '' } = found
  const message = error instanceof Error ? errorMessage(error, 'sslrootcert in DATABASE_URL') : ''
  const facts = { code, syscall, message, detail }
  return EXPLANATIONS.find((explanation) => matches(explanation, facts))?.sentence(facts)
}

function matches(pattern: Explanation, facts: Facts): boolean {
  if (pattern.code && !pattern.code.test(facts.code)) return false
  if (pattern.syscall && !pattern.syscall.test(facts.syscall)) return false
  return pattern.message === undefined || pattern.message.test(facts.message)
}

/** A problem of a field, or of a whole line. The first line of each file is 1. */
type FoundProblem = { file: string; line: number; field?: string; detail: string }

export const SHOWN_PROBLEMS = 20

/** The input is invalid, and nothing was imported. The message lists the first problems. */
export class ImportRejected extends OperatorError {
  override name = 'ImportRejected'
  readonly problems: { file: string; line: number; field: string | undefined; reason: string }[]
  /** Number of all problems, including those not in `problems`. */
  readonly total: number

  /** @param found at least the first problems @param total number of all of them */
  constructor(found: FoundProblem[], total = found.length) {
    const problems = found.slice(0, SHOWN_PROBLEMS).map(({ file, line, field, detail }) => {
      return { file, line, field, reason: detail }
    })
    const lines = problems.map(({ file, line, field, reason }) =>
      escaped(`${file}:${line}: ${field ? `${field}: ` : ''}${reason}`),
    )
    const more = total - problems.length
    if (more > 0) lines.push(`… and ${pluralize(more, 'more problem')}`)
    super(`${pluralize(total, 'problem')} in the input; nothing was imported:\n${lines.join('\n')}`)
    this.problems = problems
    this.total = total
  }
}

/** Changes a message of Commander. It suggests no name that only begins like the word. */
function inOurWords(message: string, names: string[]): string {
  const [, word] = /^error: unknown command '(\S+)'$/.exec(message) ?? []
  const longer = word === undefined ? undefined : names.find((name) => name.startsWith(word))
  const text = message
    .replace('error: ', '')
    .replaceAll(/\s+/g, ' ')
    .replace(/ \(Did you mean (.*)\?\)$/, '. Did you mean $1?')
    .replace(
      /^command-argument value ('.*') is invalid for argument '(.*)'\./,
      '$1 is no valid <$2>.',
    )
    .replace(/^option '(--[a-z-]+).*?' argument ('.*') is invalid\./, '$2 is no valid value of $1.')
  return longer === undefined ? text : `${text}. Did you mean ${longer}?`
}

/**
 * Returns the exit code, the sentence and the JSON of a failed command. `isOfDatabase`: the name of the database helps.
 * @param call its call, for its help @param names those of its subcommands
 */
export function exitResult(
  error: unknown,
  verbose: boolean,
  signal: AbortSignal,
  call: string,
  names: string[] = [],
) {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  const isExplained = error instanceof OperatorError
  let exitCode = 1
  const databaseSentence = isExplained ? undefined : explainDatabaseError(error)
  const isOfDatabase =
    error instanceof NotInDatabase || (databaseSentence !== undefined && !signal.aborted)
  let sentence = isExplained ? message : databaseSentence
  if (signal.aborted) {
    exitCode = 128 + os.constants.signals[signal.reason as NodeJS.Signals]
    if (!isExplained) sentence = 'Interrupted; unfinished changes are rolled back.'
  } else if (error instanceof CommanderError) {
    exitCode = 2
    const text = inOurWords(message, names)
    const ended = text.slice(1).replace(/([^.?)])$/, '$1.')
    sentence = `${text.charAt(0).toUpperCase()}${ended} See ${call} --help.`
  }
  sentence ??= verbose ? stack : `Unexpected error: ${message} (--verbose prints its stack).`
  if (!(error instanceof ImportRejected))
    return { exitCode, sentence, json: { error: sentence }, isOfDatabase }
  const { problems: faults, total } = error
  return { exitCode, sentence, json: { error: 'rejected', faults, total }, isOfDatabase }
}
