import pg from 'pg'
import { Unavailable } from '../limits/errors.ts'

/** The server is down or cancelled the statement. Another server may respond. */
export class ServerFailed extends Unavailable {
  override name = 'ServerFailed'
}

/** The server sent nothing in time. A second attempt would exceed the deadline. */
export class ServerSilent extends ServerFailed {
  override name = 'ServerSilent'
}

/** The server is a standby, whose data may be old. */
export class ServerIsStandby extends ServerFailed {
  override name = 'ServerIsStandby'
}

/**
 * SQLSTATEs that are caused by the state of the server, not by the statement.
 * 08: connection exceptions. 53: insufficient resources. 57: shutdown or cancellation. 58: system
 * errors, such as a disk failure. 55P03: lock timeout. 40001 and 40P01: conflicts on a standby.
 */
const TRANSIENT = /^(08|53|57|58|55P03|40001|40P01)/

const SCHEMA_BEHIND = /^(42P01|42703|42704|42883|42501|3F000)$/

function isTransient(error: unknown): boolean {
  if (error instanceof Unavailable) return true
  if (error instanceof pg.DatabaseError) {
    return TRANSIENT.test(error.code ?? '') || isSchemaBehind(error)
  }
  return isBroken(error)
}

export function isSchemaBehind(error: unknown): boolean {
  return error instanceof pg.DatabaseError && SCHEMA_BEHIND.test(error.code ?? '')
}

export function isDenied(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.code === '42501'
}

/** True if PostgreSQL rejects the user or the password of a new connection. */
export function isLoginRejected(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('28') === true
}

/** True if the connection is unusable: PostgreSQL closes it above severity ERROR. A broken socket is a plain Error. */
export function isBroken(error: unknown): boolean {
  if (error instanceof Unavailable) return false
  if (error instanceof pg.DatabaseError) return error.severity !== 'ERROR'
  return error instanceof Error && !(error instanceof TypeError)
}

export function isCut(error: unknown): boolean {
  return isBroken(error) && !(error instanceof pg.DatabaseError)
}

/** True if the network reset the connection. The next attempt may succeed. */
export function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNRESET'
}

/** True if query_wait_timeout of PgBouncer cancelled the query. PgBouncer closes only this connection. */
export function isPoolerTimeout(error: unknown): boolean {
  if (error instanceof Unavailable) return isPoolerTimeout(error.cause)
  if (!(error instanceof pg.DatabaseError)) return false
  return error.code === '08P01' && error.message === 'query_wait_timeout'
}

export function isStandby(error: unknown): boolean {
  return (
    error instanceof ServerIsStandby || (error instanceof ServerFailed && isStandby(error.cause))
  )
}

export function isLocked(error: unknown): boolean {
  if (error instanceof Unavailable) return isLocked(error.cause)
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/**
 * True if the server did not respond. False if the service itself rejected the request, or if the server ended a
 * slow statement (57014): overload alone must not make an instance not ready.
 */
export function isServerFailure(error: unknown): boolean {
  if (!(error instanceof Unavailable)) return false
  if (error.cause instanceof pg.DatabaseError && error.cause.code === '57014') return false
  return error instanceof ServerFailed || error.cause !== undefined
}

/** True if a standby cancelled a query that conflicts with replay. 40P01 is a deadlock with replay. */
export function isStandbyConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40001|40P01)$/.test(error.code ?? '')
}

/**
 * True if the server cannot use the prepared statement. Either a migration changed its column types
 * (0A000), or a pooler assigned another connection. That connection does not have the statement (26000)
 * or already has it (42P05). An unnamed statement works in all three cases.
 */
export function isLostPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(0A000|26000|42P05)$/.test(error.code ?? '')
}

/** True if another connection or server may respond. After a pooler timeout, a retry would only queue again. */
export function isConnectionFailure(error: unknown): boolean {
  return !isPoolerTimeout(error) && (isBroken(error) || isStandbyConflict(error))
}

/** Wraps transient failures in Unavailable. Other errors pass unchanged. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof Unavailable || !isTransient(error)) return error
  const Failure = isConnectionFailure(error) ? ServerFailed : Unavailable
  return new Failure('the database did not respond', { cause: error })
}
