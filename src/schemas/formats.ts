// Without look-ahead, which many regular expression engines lack.
const YEAR = '(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)'
const MONTH = '(?:0[1-9]|1[0-2])'
const DAY = '(?:0[1-9]|[12][0-9]|3[01])'

/** Pattern of a day as YYYY-MM-DD, in the years 0001 to 9999. Not every day that it allows exists. */
export const DAY_PATTERN = `^${YEAR}-${MONTH}-${DAY}$`

const DAYS = new RegExp(DAY_PATTERN)

/** True for an existing day as YYYY-MM-DD, in the years 0001 to 9999: those that PostgreSQL has, too. */
export function isDay(value: unknown): value is string {
  if (typeof value !== 'string' || !DAYS.test(value)) return false
  const day = Number(value.slice(-2))
  // JavaScript reads the 30th of February as a day in March. Each month has 28 days.
  return day <= 28 || new Date(value).getUTCDate() === day
}

/** An hour that sorts as text. PostgreSQL reads this pattern in the same way. */
export const HOUR_PATTERN = '^(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]+)?)?$'

const HOURS = new RegExp(HOUR_PATTERN)

export function isHour(value: unknown): value is string {
  return typeof value === 'string' && HOURS.test(value)
}

const UUIDS = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True for a UUID, in any case. */
export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUIDS.test(value)
}
