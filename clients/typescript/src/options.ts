/** Longest time limit and delay: a day. setTimeout() fires at once after 24 days or more. */
export const MAX_MS = 86_400_000

/**
 * Returns a valid number.
 * @throws TypeError if it is none; its message has no value
 */
export function numberOf(name: string, value: unknown, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw new TypeError(`${name} must be a number from ${min} to ${max}`)
}

/** Returns a valid integer, as numberOf(). */
export function integerOf(name: string, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && Number(value) >= min && Number(value) <= max) return Number(value)
  throw new TypeError(`${name} must be an integer from ${min} to ${max}`)
}

/** Returns a valid function, or undefined. */
export function functionOf<T>(name: string, value: T | undefined): T | undefined {
  if (value === undefined || typeof value === 'function') return value
  throw new TypeError(`${name} must be a function`)
}

/** Returns a text of visible ASCII. An error of fetch() would show an invalid header. */
export function visibleAscii(name: string, value: unknown, maxLength = 8192): string {
  const valid = typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
  if (valid && value.length <= maxLength) return value
  throw new TypeError(`${name} must be 1 to ${maxLength} visible ASCII characters`)
}

/**
 * Returns the token of an app.
 * @throws TypeError also for a whole header: the client adds `Bearer`
 */
export function appToken(value: unknown): string {
  if (typeof value === 'string' && /^bearer\b/i.test(value))
    throw new TypeError('token must be the token alone: the client adds "Bearer"')
  if (value === '') throw new TypeError('the token is empty: is the variable set?')
  return visibleAscii('token', value)
}

/**
 * Returns the token of a connection. The service would answer 404 for a line break that a file has at its end,
 * as it does for a connection that was removed.
 */
export function connectionToken(value: unknown): string {
  // A path would lose `.` and `..`.
  if (typeof value !== 'string' || /^\.{0,2}$/.test(value) || /\p{Surrogate}/u.test(value))
    throw new TypeError('the token of a connection must be a text other than "." and ".."')
  if (value !== value.trim() || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
    throw new TypeError(
      'the token of a connection begins or ends with white space, or has a line break',
    )
  return value
}

/** Returns a day for a query. */
export function dayOf(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value
  throw new TypeError(`${name} must be a text such as 2025-03-14`)
}

/** Returns a day of the calendar: it is counted, or compared as text. */
export function calendarDay(name: string, value: unknown): string {
  const isDay = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value)
  const time = isDay ? Date.parse(value) : Number.NaN
  if (isDay && !Number.isNaN(time) && new Date(time).toISOString().startsWith(value)) return value
  throw new TypeError(`${name} must be a day such as 2025-03-14`)
}
