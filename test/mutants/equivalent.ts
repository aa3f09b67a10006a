/**
 * Mutants that no test can kill, by file and by the changed line before and after, with the reason.
 * test/mutants/run.ts does not try them, and does not count them.
 */
export const equivalent: Record<string, Record<string, string>> = {
  'src/http/authentication.ts': {
    "app.decorateRequest('caller') -> ;": 'It only gives all requests the same hidden class.',
    "app.decorateRequest('caller') -> app.decorateRequest('')":
      'It only gives all requests the same hidden class.',
    "app.decorateRequest('tenant') -> ;": 'It only gives all requests the same hidden class.',
    "app.decorateRequest('tenant') -> app.decorateRequest('')":
      'It only gives all requests the same hidden class.',
  },
  'src/http/errors.ts': {
    "app.decorateRequest('errorCode') -> ;": 'It only gives all requests the same hidden class.',
    "app.decorateRequest('errorCode') -> app.decorateRequest('')":
      'It only gives all requests the same hidden class.',
    "app.decorateRequest('unavailableReason') -> ;":
      'It only gives all requests the same hidden class.',
    "app.decorateRequest('unavailableReason') -> app.decorateRequest('')":
      'It only gives all requests the same hidden class.',
  },
  'src/queries/list-page.ts': {
    'const [first, last] = [yearOf(from) ?? 1, yearOf(to) ?? new Date().getUTCFullYear()] -> const [first, last] = [yearOf(from) ?? 2, yearOf(to) ?? new Date().getUTCFullYear()]':
      'Both statements give the same total. The years only select the faster one.',
    "return last - first <= 1 ? 'first page of days' : 'first page of months' -> return true ? 'first page of days' : 'first page of months'":
      'Both statements give the same total. The years only select the faster one.',
    "return last - first <= 1 ? 'first page of days' : 'first page of months' -> return last + first <= 1 ? 'first page of days' : 'first page of months'":
      'Both statements give the same total. The years only select the faster one.',
    'day === undefined ? undefined : Number(day.slice(0, 4)) -> day === undefined ? undefined : Number(day.slice(1, 4))':
      'Both statements give the same total. The years only select the faster one.',
    "if (from === undefined && to === undefined) return 'first page' -> if (false) return 'first page'":
      'The statement of months takes the same stored total for an open range.',
  },
  'src/queries/row-counts.ts': {
    '.where(sql<boolean>`skipped < row_count`) -> .where(sql<boolean>`skipped <= row_count`)':
      'The page then starts at an earlier day, and skips all rows of that day.',
    ".where(sql<boolean>`skipped < row_count`) .orderBy(sql.ref(period), 'desc') -> .where(sql<boolean>`skipped < row_count`)":
      'PostgreSQL returns the rows of the window function in this order. SQL does not guarantee it.',
  },
}
