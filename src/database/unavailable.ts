import pg from 'pg'

/** No answer can be had from the database now, and asking again later may help. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'
}

/**
 * SQLSTATEs that tell of the server's state, not of the statement: connection trouble (08), out of
 * resources (53), an operator's intervention such as a shutdown or a cancelled statement (57), a lock
 * that was not had (55P03), a standby that had to cancel the query (40001).
 */
const PASSING = /^(08|53|57|55P03|40001)/

/** What remains after these two is a fault of ours. */
export function isPassing(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return PASSING.test(error.code ?? '')
  // pg reports a connection that breaks, or that cannot be had, as an Error without a class.
  return error instanceof Error
}

/** Whether the statement may have run into a plan of before a migration, which preparing again mends. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000'
}
