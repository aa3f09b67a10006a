/** Makes a pattern for `t.match()` that also has the length of each array: by itself, it accepts an array with further items. */
export function withLengths(pattern: unknown): object {
  return complete(pattern) as object
}

function complete(pattern: unknown): unknown {
  if (Array.isArray(pattern)) return { ...pattern.map(complete), length: pattern.length }
  if (!isPlainObject(pattern)) return pattern
  const entries = Object.entries(pattern).map(([key, value]) => [key, complete(value)])
  return Object.fromEntries(entries)
}

/** False for a class or an object of one, such as a regular expression: `t.match()` compares these in other ways. */
function isPlainObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return Object.getPrototypeOf(value) === Object.prototype
}
