import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { pluralize } from './output.ts'

/** The command was called with wrong arguments. */
export class UsageError extends OperatorError {
  override name = 'UsageError'
}

// Former names, still used by connection.ts.
export class Failure extends OperatorError {}
export class UsageMistake extends UsageError {}

/** Whether a statement failed because a row would have broken the constraint of that name. */
export function isViolation(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.constraint === constraint
}

/**
 * What an error of the database means to the person at the keyboard, in a sentence; undefined where
 * it is none that can be foreseen.
 */
export function explainDatabaseError(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return explainSqlState(error)
  // A host with several addresses fails with an error for each of them.
  const first = error instanceof AggregateError ? error.errors[0] : error
  const { code = '', message = '' } = (first ?? {}) as { code?: string; message?: string }
  return NETWORK[code] ?? CLIENT.find(([form]) => form.test(message))?.[1]
}

const BROKEN = 'The connection to PostgreSQL broke; what was not finished is undone.'
const UNREACHABLE = 'PostgreSQL cannot be reached at the address in DATABASE_URL'

const NETWORK: Record<string, string> = {
  ECONNREFUSED: `${UNREACHABLE}: nothing listens there.`,
  ENOTFOUND: `${UNREACHABLE}: there is no such host.`,
  EAI_AGAIN: `${UNREACHABLE}: the name of the host cannot be looked up now.`,
  EHOSTUNREACH: `${UNREACHABLE}: no way leads there.`,
  ENETUNREACH: `${UNREACHABLE}: no way leads there.`,
  ETIMEDOUT: `${UNREACHABLE}: it does not answer.`,
  ECONNRESET: BROKEN,
  EPIPE: BROKEN,
}

/** What pg reports as an Error without a code. */
const CLIENT: [RegExp, string][] = [
  [/timeout/i, `${UNREACHABLE}: it does not answer.`],
  [/Connection (ended|terminated)|not queryable/, BROKEN],
  [/password must be/, 'PostgreSQL asks for a password, and DATABASE_URL has none.'],
  [/does not support SSL/, 'DATABASE_URL asks for TLS, which this PostgreSQL does not speak.'],
]

/** By SQLSTATE, or by its class: the first two characters. */
const SQL_STATES: Record<string, string> = {
  '28P01': 'PostgreSQL refuses the user or the password in DATABASE_URL.',
  '28': 'PostgreSQL refuses this user, database or address (see its pg_hba.conf)',
  '3D000': 'The database in DATABASE_URL does not exist: create it first.',
  '25006':
    'The database only lets itself be read: this is a standby, or a role that may not write.',
  '42501': 'The role in DATABASE_URL may not do this: use the one that owns the tables',
  '53100': 'The disk of PostgreSQL is full; nothing was changed.',
  '53300': 'PostgreSQL has no connection left for the operator: try again later.',
  '53': 'PostgreSQL is out of resources',
  '55P03': 'Another session holds a lock that this needs: try again later.',
  '57014': 'The statement was cancelled; nothing was changed.',
  '57P03': 'PostgreSQL is starting or stopping: try again later.',
  '57': BROKEN,
  '08': BROKEN,
  '23505': 'Another session wrote the same rows at the same time; nothing was changed: try again.',
  '23503': 'Another session deleted what this belongs to at the same time; nothing was changed.',
  '40P01': 'Another session was in the way (deadlock); nothing was changed: try again.',
}

function explainSqlState({ code = '', message }: pg.DatabaseError): string | undefined {
  const sentence = SQL_STATES[code] ?? SQL_STATES[code.slice(0, 2)]
  return sentence?.endsWith('.') === false ? `${sentence} (${message}).` : sentence
}

/** What keeps a row from being imported. */
export interface Fault {
  file: string
  /** The first line of a file is 1. */
  line: number
  /** The field, where one is at fault and not the whole line. */
  field?: string
  reason: string
}

/** How many faults are told in full. */
export const SHOWN_FAULTS = 20

/** Nothing was imported, because rows are at fault. The message tells the first of them, one a line. */
export class ImportRejected extends OperatorError {
  override name = 'ImportRejected'
  readonly faults: Fault[]
  /** All of them, those that are not in `faults` included. */
  readonly total: number

  constructor(faults: Fault[], total: number) {
    const lines = faults.map(({ file, line, field, reason }) =>
      [`${file}:${line}`, field, reason].filter((part) => part !== undefined).join(': '),
    )
    const more = total - faults.length
    if (more > 0) lines.push(`… and ${pluralize(more, 'more fault')}`)
    const count = total === 1 ? 'One fault' : pluralize(total, 'fault')
    super(`${count} in the input, so that nothing was imported:\n${lines.join('\n')}`)
    this.faults = faults
    this.total = total
  }
}
