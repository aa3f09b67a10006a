/**
 * Mutants that no test can notice, by file and by the changed line before and after, with the reason.
 * test/mutants/run.ts does not try them, and does not count them.
 */
export const equivalent: Record<string, Record<string, string>> = {}
