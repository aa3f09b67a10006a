import os from 'node:os'
import { CommanderError } from 'commander'
import type pg from 'pg'
import { errorMessage } from '../error-message.ts'
import { NotInDatabase, OperatorError } from '../operator-error.ts'
import { ServerFailed } from '../postgres/failures.ts'
import { escaped, pluralize } from './output.ts'

const BROKEN = 'The connection to PostgreSQL broke; unfinished changes are rolled back.'
const UNREACHABLE = 'PostgreSQL cannot be reached at the address in DATABASE_URL'

/** By code, system call and message of an error. $1 is the value that another row has already, % the message. */
const SENTENCES: [RegExp, string][] = [
  // Citus names a constraint only in the message, with the number of a shard.
  [/\bapp_name_key/, 'The app $1 already exists: `app list` shows all apps.'],
  [/\bapp_client_id_key/, 'Another app already has the client id $1.'],
  // Two generated tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
  [
    /\bconnection_pkey/,
    'A connection with this token exists already: a token is unique in the whole database.',
  ],
  [/^28P01/, 'PostgreSQL rejects the user or the password in DATABASE_URL.'],
  [/^28/, 'PostgreSQL rejects this user, database or address (see its pg_hba.conf) (%).'],
  [/^3D000/, 'The database in DATABASE_URL does not exist: create it first.'],
  [
    /^22P05/,
    'The encoding of the database cannot store this text (%): move the rows to a database with UTF8.',
  ],
  [/^25006/, 'The database is read-only: it is a standby, or the role may not write.'],
  [/^42P01/, 'The schema is outdated: run `operator migrate` first.'],
  [/^42501/, 'The role in DATABASE_URL may not do this: use the one that owns the tables (%).'],
  [/^53100/, 'The disk of PostgreSQL is full; nothing was changed.'],
  [/^53300/, 'PostgreSQL has no free connection: try again later.'],
  [/^53/, 'PostgreSQL is out of resources (%).'],
  [/^55P03/, 'Another session holds a lock that this command needs: try again later.'],
  [/^57014/, 'The statement was cancelled; nothing was changed.'],
  [/^57P03/, 'PostgreSQL is starting or stopping: try again later.'],
  [
    /^23505/,
    'Another session wrote the same rows at the same time; nothing was changed: try again.',
  ],
  // Citus copies many rows to a worker, and returns the message of the worker without its SQLSTATE.
  [
    /^23503|violates foreign key constraint/,
    'Another session deleted the parent row at the same time; nothing was changed.',
  ],
  [/^40P01/, 'Deadlock with another session; nothing was changed: try again.'],
  [/^(57|08|ECONNRESET|EPIPE)|^ +.*(Connection (ended|terminated)|not queryable)/, BROKEN],
  [
    /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|CERT_|ERR_TLS_CERT)/,
    'The certificate of PostgreSQL cannot be verified (%).',
  ],
  [/^ENOSPC write/, 'Standard output cannot be written: its disk is full.'],
  [/^\w+ (connect|read|getaddrinfo) /, `${UNREACHABLE}: %.`],
  [/^ +.*timeout/, `${UNREACHABLE}: it does not respond.`],
  [/password must be/, 'PostgreSQL requires a password, and DATABASE_URL has none.'],
  [/does not support SSL/, 'DATABASE_URL requires TLS, which this PostgreSQL does not support.'],
]

/** Explains a foreseeable error of PostgreSQL or of the connection to it, in one sentence. */
export function explainDatabaseError(error: unknown): string | undefined {
  if (error instanceof ServerFailed) return `${error.message}.`
  // A server with several addresses fails with one error for each.
  if (error instanceof AggregateError) return explainDatabaseError(error.errors[0])
  const found: Partial<pg.DatabaseError & NodeJS.ErrnoException> = Object(error)
  const { code = '', syscall = '', detail = '' } = found
  const message = error instanceof Error ? errorMessage(error, 'sslrootcert in DATABASE_URL') : ''
  const text = `${code} ${syscall} ${message}`
  const [, sentence] = SENTENCES.find(([pattern]) => pattern.test(text)) ?? []
  const taken = /=\((.*)\)/s.exec(detail)?.[1] ?? ''
  return sentence?.replace('%', () => message).replace('$1', () => taken)
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

/**
 * Returns the exit code, the sentence and the JSON of a failed command. `isOfDatabase`: the name of the database helps.
 * @param call its call, for its help
 */
export function exitResult(error: unknown, verbose: boolean, signal: AbortSignal, call: string) {
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
    const text = message
      .replace('error: ', '')
      .replaceAll(/\s+/g, ' ')
      .replace(/ \(Did you mean (.*)\?\)$/, '. Did you mean $1?')
    const ended = text.slice(1).replace(/([^.?)])$/, '$1.')
    sentence = `${text.charAt(0).toUpperCase()}${ended} See ${call} --help.`
  }
  sentence ??= verbose ? stack : `Unexpected error: ${message} (--verbose prints its stack).`
  if (!(error instanceof ImportRejected))
    return { exitCode, sentence, json: { error: sentence }, isOfDatabase }
  const { problems: faults, total } = error
  return { exitCode, sentence, json: { error: 'rejected', faults, total }, isOfDatabase }
}
