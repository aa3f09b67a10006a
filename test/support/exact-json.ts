export interface Digits {
  digits: string
}

/** Parses JSON and replaces each number by its text, `{ digits }`, to compare it without rounding. */
// biome-ignore lint/suspicious/noExplicitAny: a test reads a body of any shape.
export function parseExact(text: string): any {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? { digits: source } : value,
  )
}
