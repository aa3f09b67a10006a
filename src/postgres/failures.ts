import pg from 'pg'
import { Unavailable } from '../limits/unavailable.ts'

/** The server is down or cancelled the statement. Another server may respond. */
export class ServerFailed extends Unavailable {
  override name = 'ServerFailed'
  override get reason() {
    return 'database' as const
  }
}

/** The server is a standby, whose data may be old. */
export class ServerIsStandby extends Error {
  override name = 'ServerIsStandby'
}

/** SQLSTATEs by their meaning for a program that reads. */
export const SqlState = {
  /** A migration is missing. */
  schemaBehind: /^(42P01|42703|42704|42883|42501|3F000)$/,
  denied: /^42501$/,
  /** A lock did not become free within lock_timeout. */
  locked: /^55P03$/,
  /** A standby cancelled a query that conflicts with replay. 40P01 is a deadlock with replay. */
  conflict: /^(40001|40P01)$/,
  /**
   * The prepared statement is unusable: a migration changed its column types (0A000), or a pooler assigned another
   * connection, without it (26000) or with it (42P05). An unnamed statement works in all three cases.
   */
  lostPlan: /^(0A000|26000|42P05)$/,
  /** Caused by the server's state: connections (08), resources (53), shutdown or cancellation (57), system (58). */
  transient: /^(08|53|57|58|55P03|40001|40P01)/,
}

/** Returns the error that made a read unavailable. */
const causeOf = (error: unknown): unknown =>
  error instanceof Unavailable ? causeOf(error.cause) : error

/** True for an error of PostgreSQL with one of these SQLSTATEs. */
export function hasState(error: unknown, states: RegExp): boolean {
  const cause = causeOf(error)
  return cause instanceof pg.DatabaseError && states.test(cause.code ?? '')
}

/** True if query_wait_timeout of PgBouncer cancelled the query. PgBouncer closes only this connection. */
export const isPoolerTimeout = (error: unknown) =>
  hasState(error, /^08P01$/) && (causeOf(error) as Error).message === 'query_wait_timeout'

export const isStandby = (error: unknown) => causeOf(error) instanceof ServerIsStandby

/** True if the connection is unusable: PostgreSQL closes it above severity ERROR. A broken socket is a plain Error. */
export function isBroken(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.severity !== 'ERROR'
  return error instanceof Error && !(error instanceof TypeError || error instanceof Unavailable)
}

/** True if the network cut the connection. */
export const isCut = (error: unknown) => isBroken(error) && !(error instanceof pg.DatabaseError)

/** True if the network reset the connection. The next attempt may succeed. */
export const isReset = (error: unknown) =>
  error instanceof Error && 'code' in error && error.code === 'ECONNRESET'

/** True if another connection or server may respond. After a pooler timeout, a retry would only queue again. */
export const isConnectionFailure = (error: unknown) =>
  !isPoolerTimeout(error) && (isBroken(error) || hasState(error, SqlState.conflict))

/**
 * Returns the message of PostgreSQL if it rejects a statement itself, for example without a right or a column. A lock, a
 * timeout or a lost connection is no such error: the same statement may succeed later.
 */
export function rejectionOf(error: unknown): string | undefined {
  const cause = causeOf(error)
  const isRejection =
    cause instanceof pg.DatabaseError && !isBroken(cause) && !hasState(cause, SqlState.transient)
  return isRejection ? cause.message : undefined
}

/** Wraps failures after which a later request may succeed in Unavailable. Other errors pass unchanged. */
export function asUnavailable(error: unknown): unknown {
  const { transient, schemaBehind } = SqlState
  const isState = hasState(error, transient) || hasState(error, schemaBehind)
  if (error instanceof Unavailable || !(isState || isBroken(error))) return error
  const Failure = isConnectionFailure(error) ? ServerFailed : Unavailable
  return new Failure('the database did not respond', { cause: error })
}
