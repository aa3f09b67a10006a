/**
 * Mutants that no test can notice, by file and by the changed line before and after, with the reason.
 * test/mutants/run.ts does not try them, and does not count them.
 */
export const equivalent: Record<string, Record<string, string>> = {
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
    "if (from === undefined && to === undefined) return 'first page' -> if (false) return 'first page'":
      'The statement of months takes the same stored total for an open range.',
  },
}
