import os from 'node:os'
import { CommanderError } from 'commander'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { ServerFailed } from '../postgres/failures.ts'
import { escaped, pluralize } from './output.ts'

export class UsageError extends OperatorError {
  override name = 'UsageError'
}

/** Explains a foreseeable error of PostgreSQL or of the connection to it, in one sentence. */
export function explainDatabaseError(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return explainSqlState(error)
  if (error instanceof ServerFailed) return `${error.message}.`
  // A server with several addresses fails with one error for each.
  const first = error instanceof AggregateError ? error.errors[0] : error
  const { code = '', syscall = '', message = '' } = (first ?? {}) as NodeJS.ErrnoException
  if (code === 'ECONNRESET' || code === 'EPIPE') return BROKEN
  if (/^(?:connect|read|getaddrinfo)$/.test(syscall)) return `${UNREACHABLE}: ${message}.`
  return CLIENT.find(([pattern]) => pattern.test(message))?.[1]
}

const BROKEN = 'The connection to PostgreSQL broke; unfinished changes are rolled back.'
const UNREACHABLE = 'PostgreSQL cannot be reached at the address in DATABASE_URL'

/** Errors of pg without a code. */
const CLIENT: [RegExp, string][] = [
  [/timeout/, `${UNREACHABLE}: it does not respond.`],
  [/Connection (ended|terminated)|not queryable/, BROKEN],
  [/password must be/, 'PostgreSQL requires a password, and DATABASE_URL has none.'],
  [/does not support SSL/, 'DATABASE_URL requires TLS, which this PostgreSQL does not support.'],
]

/** By SQLSTATE, or by its class: the first two characters. */
const SQL_STATES: Record<string, string> = {
  '28P01': 'PostgreSQL rejects the user or the password in DATABASE_URL.',
  '28': 'PostgreSQL rejects this user, database or address (see its pg_hba.conf)',
  '3D000': 'The database in DATABASE_URL does not exist: create it first.',
  '25006': 'The database is read-only: it is a standby, or the role may not write.',
  '42P01': 'The schema of the database is outdated: run `npm run operator -- migrate` first.',
  '42501': 'The role in DATABASE_URL may not do this: use the one that owns the tables',
  '53100': 'The disk of PostgreSQL is full; nothing was changed.',
  '53300': 'PostgreSQL has no free connection: try again later.',
  '53': 'PostgreSQL is out of resources',
  '55P03': 'Another session holds a lock that this command needs: try again later.',
  '57014': 'The statement was cancelled; nothing was changed.',
  '57P03': 'PostgreSQL is starting or stopping: try again later.',
  '57': BROKEN,
  '08': BROKEN,
  '23505': 'Another session wrote the same rows at the same time; nothing was changed: try again.',
  '23503': 'Another session deleted the parent row at the same time; nothing was changed.',
  '40P01': 'Deadlock with another session; nothing was changed: try again.',
}

/** By constraint, which Citus names only in the message. $1 is the value that another row has already. */
const CONSTRAINTS: [RegExp, string][] = [
  [/\bapp_name_key/, 'The app $1 already exists.'],
  [/\bapp_client_id_key/, 'Another app already has the client id $1.'],
  // Two generated tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
  [
    /\bconnection_pkey/,
    'A connection with this token exists already: a token is unique in the whole database.',
  ],
]

function explainSqlState(error: pg.DatabaseError): string | undefined {
  const { code = '', message, constraint = message, detail = '' } = error
  const [, violated] = CONSTRAINTS.find(([pattern]) => pattern.test(constraint)) ?? []
  if (violated) return violated.replace('$1', () => /=\((.*)\)/s.exec(detail)?.[1] ?? '')
  // Citus copies many rows to a worker, and returns the message of the worker without its SQLSTATE.
  const state = message.includes('violates foreign key constraint') ? '23503' : code
  const sentence = SQL_STATES[state] ?? SQL_STATES[state.slice(0, 2)]
  return sentence?.endsWith('.') === false ? `${sentence} (${message}).` : sentence
}

export interface FoundProblem {
  file: string
  /** Starts at 1 in each file. */
  line: number
  /** Path of the field, unless the problem is the whole line. */
  field?: string
  detail: string
}

export const SHOWN_PROBLEMS = 20

/** The input is invalid, and nothing was imported. The message lists the first problems. */
export class ImportRejected extends OperatorError {
  override name = 'ImportRejected'
  readonly problems: (Omit<FoundProblem, 'detail'> & { reason: string })[]
  /** Number of all problems, including those not in `problems`. */
  readonly total: number

  /** @param found at least the first problems @param total number of all of them */
  constructor(found: FoundProblem[], total = found.length) {
    const problems = found.slice(0, SHOWN_PROBLEMS).map(({ file, line, field, detail }) => ({
      file,
      line,
      ...(field && { field }),
      reason: detail,
    }))
    const lines = problems.map(({ file, line, field, reason }) =>
      escaped([`${file}:${line}`, field, reason].filter((part) => part !== undefined).join(': ')),
    )
    const more = total - problems.length
    if (more > 0) lines.push(`… and ${pluralize(more, 'more problem')}`)
    super(`${pluralize(total, 'problem')} in the input; nothing was imported:\n${lines.join('\n')}`)
    this.problems = problems
    this.total = total
  }
}

/** Returns the exit code, the sentence and the JSON of a failed command. @param call its call, for its help */
export function exitResult(error: unknown, verbose: boolean, signal: AbortSignal, call: string) {
  if (signal.aborted) {
    const sentence = 'Interrupted; unfinished changes are rolled back.'
    const code = 128 + os.constants.signals[signal.reason as NodeJS.Signals]
    return failed(code, error instanceof OperatorError ? error.message : sentence)
  }
  if (error instanceof CommanderError || error instanceof UsageError) {
    return failed(2, `${usageSentence(error.message)} See ${call} --help.`)
  }
  if (error instanceof ImportRejected) {
    const { message, problems: faults, total } = error
    return { exitCode: 1, sentence: message, json: { error: 'rejected', faults, total } }
  }
  if (error instanceof OperatorError) return failed(1, error.message)
  return failed(1, explainDatabaseError(error) ?? unexpected(error, verbose))
}

function failed(exitCode: number, sentence: string) {
  return { exitCode, sentence, json: { error: sentence } }
}

function usageSentence(message: string): string {
  const text = message.replace('error: ', '').replaceAll(/\s+/g, ' ')
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/([^.?)])$/, '$1.')
}

function unexpected(error: unknown, verbose: boolean): string {
  if (verbose && error instanceof Error) return error.stack ?? error.message
  const message = error instanceof Error ? error.message : String(error)
  return `Unexpected error: ${message} (--verbose prints its stack).`
}
