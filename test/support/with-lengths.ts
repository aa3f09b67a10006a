/** Makes a pattern for `t.match()` that also compares the length of each array. Without it, `t.match()` ignores further items. */
export function withLengths<Pattern extends object>(pattern: Pattern): Pattern {
  return complete(pattern) as Pattern
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
  const prototype = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
