/**
 * How PostgreSQL plans what the service asks: once a session, and as what every statement was made for, a
 * look-up by key that reads rows in the order of an index. Left to itself it scans or sorts a table
 * that looks small, because there are no statistics of it yet or it was empty when they were made, and a
 * session would keep to such a plan while the table grows. A test explains every statement.
 */
export const PLANNER_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
}
