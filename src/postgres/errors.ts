import pg from 'pg'

/** The database cannot answer now. A later request may succeed. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'

  /** Records no stack: an outage creates one of these for each request. */
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** This server is down or cancelled the statement. Another server may answer. */
export class ServerFailed extends DatabaseUnavailable {
  override name = 'ServerFailed'
}

/** The server sent nothing in time. A second attempt would be too late. */
export class ServerSilent extends ServerFailed {
  override name = 'ServerSilent'
}

/**
 * SQLSTATEs of the server's state, not of the statement: connection exceptions (08), insufficient
 * resources (53), operator intervention such as a shutdown or a cancelled statement (57), system errors
 * such as a bad disk (58), a lock timeout (55P03), a cancelled query of a standby (40).
 */
const TRANSIENT = /^(08|53|57|58|55P03|40001|40P01)/

/** A table, column, type, function, privilege or schema is missing. */
const SCHEMA_BEHIND = /^(42P01|42703|42704|42883|42501|3F000)$/

/** True for failures that neither the service nor the request has caused. */
function isTransient(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true
  if (error instanceof pg.DatabaseError) {
    return TRANSIENT.test(error.code ?? '') || isSchemaBehind(error)
  }
  return isBroken(error)
}

/** True where the statement needs a schema that this server does not have, or not yet. */
export function isSchemaBehind(error: unknown): boolean {
  return error instanceof pg.DatabaseError && SCHEMA_BEHIND.test(error.code ?? '')
}

/**
 * True where the connection is unusable. A message above ERROR is the server's last one; pg reports a
 * broken socket as a plain Error.
 */
export function isBroken(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return false
  if (error instanceof pg.DatabaseError) return error.severity !== 'ERROR'
  return error instanceof Error && !(error instanceof TypeError)
}

/**
 * True where PgBouncer gave up on the query, because no server connection became free within its
 * query_wait_timeout. PgBouncer closes only the connection on which it says so.
 */
export function isPoolerTimeout(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return isPoolerTimeout(error.cause)
  if (!(error instanceof pg.DatabaseError)) return false
  return error.code === '08P01' && error.message === 'query_wait_timeout'
}

/** True where a table stayed locked for longer than lock_timeout. */
export function isLocked(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return isLocked(error.cause)
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/** True where the server did not answer, false where the service rejected the request itself. */
export function isServerFailure(error: unknown): boolean {
  if (!(error instanceof DatabaseUnavailable)) return false
  return error instanceof ServerFailed || error.cause !== undefined
}

/** True where a standby cancelled a query that conflicts with replay; 40P01 is its deadlock. */
export function isStandbyConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40001|40P01)$/.test(error.code ?? '')
}

/**
 * True where the server cannot use the prepared statement: a migration changed its column types
 * (0A000), or a pooler assigned a connection that lacks it, or has it already (26000, 42P05). The
 * same statement without a name works in all three cases.
 */
export function isLostPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(0A000|26000|42P05)$/.test(error.code ?? '')
}

/**
 * True where another connection or server may answer the same statement. After a pooler timeout a
 * second attempt would only lengthen the pooler's queue.
 */
export function isConnectionFailure(error: unknown): boolean {
  return !isPoolerTimeout(error) && (isBroken(error) || isStandbyConflict(error))
}

/** Wraps transient failures; errors of the statement itself pass unchanged. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof DatabaseUnavailable || !isTransient(error)) return error
  const Failure = isConnectionFailure(error) ? ServerFailed : DatabaseUnavailable
  return new Failure('the database did not answer', { cause: error })
}
