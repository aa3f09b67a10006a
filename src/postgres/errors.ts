import pg from 'pg'

/** No answer can be had from the database now, and asking again later may help. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'

  /** Without a stack: in an outage there is one of these for each request, and nobody reads where. */
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** This server cannot be had, or had to cancel the statement; another one may well answer. */
export class HostFailed extends DatabaseUnavailable {
  override name = 'HostFailed'
}

/** The server said nothing within the time that it has: no second attempt would be in time either. */
export class HostSilent extends HostFailed {
  override name = 'HostSilent'
}

/**
 * SQLSTATEs that tell of the server's state, not of the statement: connection trouble (08), out of
 * resources (53), an operator's intervention such as a shutdown or a cancelled statement (57), trouble
 * with its disk (58), a lock that was not had (55P03), a standby that had to cancel the query (40).
 */
const PASSING = /^(08|53|57|58|55P03|40001|40P01)/

/** What a schema that is behind says: a table, column, function or right is missing. */
const SCHEMA_BEHIND = /^(42P01|42703|42704|42883|42501|3F000)$/

/** What is neither a fault of ours nor of the request. */
export function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return true
  if (error instanceof pg.DatabaseError) {
    return PASSING.test(error.code ?? '') || isSchemaBehind(error)
  }
  return isBroken(error)
}

/** Whether the statement was made for a schema that this server does not have, or not yet. */
export function isSchemaBehind(error: unknown): boolean {
  return error instanceof pg.DatabaseError && SCHEMA_BEHIND.test(error.code ?? '')
}

/**
 * Whether the connection can no longer be used. A message that is graver than ERROR is the server's
 * last one; pg reports a socket that broke as an Error without a class.
 */
export function isBroken(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return false
  if (error instanceof pg.DatabaseError) return error.severity !== 'ERROR'
  return error instanceof Error && !(error instanceof TypeError)
}

/** Whether nothing more can come over the connection on which this happened. */
export function isUnusable(error: unknown): boolean {
  return isBroken(error) || error instanceof DatabaseUnavailable
}

/**
 * Whether PgBouncer has sent the question away unasked, because none of its server connections became free
 * within its query_wait_timeout. It closes only the connection on which it says so.
 */
export function isTurnedAway(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return isTurnedAway(error.cause)
  if (!(error instanceof pg.DatabaseError)) return false
  return error.code === '08P01' && error.message === 'query_wait_timeout'
}

/** Whether a table that the statement needs was locked for longer than it may wait. */
export function isLocked(error: unknown): boolean {
  if (error instanceof DatabaseUnavailable) return isLocked(error.cause)
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/** Whether the server was asked and did not answer, and not we who sent the request away. */
export function isFaultOfHost(error: unknown): boolean {
  if (!(error instanceof DatabaseUnavailable)) return false
  return error instanceof HostFailed || error.cause !== undefined
}

/**
 * A standby cancels a statement that stands in the way of what it has to replay; it says deadlock
 * (40P01) where the two wait for each other.
 */
export function isStandbyConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40001|40P01)$/.test(error.code ?? '')
}

/**
 * Whether the server has no use for our prepared statement: its columns are of other types since a
 * migration (0A000), or a pooler between has given us a connection that does not have it, or has it
 * already (26000, 42P05). The same statement without a name is right in all three cases.
 */
export function isLostPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(0A000|26000|42P05)$/.test(error.code ?? '')
}
