import pg from 'pg'
import { Unavailable } from '../limits/unavailable.ts'

/** The server is down or cancelled the statement. Another server may respond. */
export class ServerFailed extends Unavailable {
  override name = 'ServerFailed'
  override get reason() {
    return 'database' as const
  }
}

/** The server sent nothing in time. A second attempt would exceed the deadline. */
export class ServerSilent extends ServerFailed {
  override name = 'ServerSilent'
}

/** The server is a standby, whose data may be old. */
export class ServerIsStandby extends ServerFailed {
  override name = 'ServerIsStandby'
}

/** True for an error of PostgreSQL with one of these SQLSTATEs. */
export const hasState = (error: unknown, states: RegExp): error is pg.DatabaseError =>
  error instanceof pg.DatabaseError && states.test(error.code ?? '')

/** Returns the error of PostgreSQL that made a read unavailable. */
const causeOf = (error: unknown): unknown =>
  error instanceof Unavailable ? causeOf(error.cause) : error

/** True if a migration is missing. */
export const isSchemaBehind = (error: unknown) =>
  hasState(error, /^(42P01|42703|42704|42883|42501|3F000)$/)

export const isDenied = (error: unknown) => hasState(error, /^42501$/)

/** True if a lock did not become free within lock_timeout. */
export const isLocked = (error: unknown) => hasState(causeOf(error), /^55P03$/)

/** True if a standby cancelled a query that conflicts with replay. 40P01 is a deadlock with replay. */
export const isStandbyConflict = (error: unknown) => hasState(error, /^(40001|40P01)$/)

/**
 * True if the server cannot use the prepared statement. Either a migration changed its column types
 * (0A000), or a pooler assigned another connection. That connection does not have the statement (26000)
 * or already has it (42P05). An unnamed statement works in all three cases.
 */
export const isLostPlan = (error: unknown) => hasState(error, /^(0A000|26000|42P05)$/)

/** True if query_wait_timeout of PgBouncer cancelled the query. PgBouncer closes only this connection. */
export function isPoolerTimeout(error: unknown): boolean {
  const cause = causeOf(error)
  return hasState(cause, /^08P01$/) && cause.message === 'query_wait_timeout'
}

export function isStandby(error: unknown): boolean {
  return (
    error instanceof ServerIsStandby || (error instanceof ServerFailed && isStandby(error.cause))
  )
}

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
  !isPoolerTimeout(error) && (isBroken(error) || isStandbyConflict(error))

/**
 * SQLSTATEs that are caused by the state of the server, not by the statement.
 * 08: connection exceptions. 53: insufficient resources. 57: shutdown or cancellation. 58: system
 * errors, such as a disk failure. 55P03: lock timeout. 40001 and 40P01: conflicts on a standby.
 */
const TRANSIENT = /^(08|53|57|58|55P03|40001|40P01)/

/** Wraps failures after which a later request may succeed in Unavailable. Other errors pass unchanged. */
export function asUnavailable(error: unknown): unknown {
  const isTransient = hasState(error, TRANSIENT) || isSchemaBehind(error) || isBroken(error)
  if (!isTransient) return error
  const Failure = isConnectionFailure(error) ? ServerFailed : Unavailable
  return new Failure('the database did not respond', { cause: error })
}
