import pg from 'pg'

/** Whether a statement failed because a row would have broken the constraint of that name. */
export function isViolation(error: unknown, constraint: string): boolean {
  return error instanceof pg.DatabaseError && error.constraint === constraint
}
