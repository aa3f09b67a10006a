/** Last day of the sample data before the first `demo advance`: a Wednesday. */
export const FIRST_DAY = '2025-12-31'

const DAY_MS = 86_400_000

/** Returns the next day from Monday to Friday. */
export function weekdayAfter(day: string): string {
  let time = Date.parse(day)
  do time += DAY_MS
  while ([0, 6].includes(new Date(time).getUTCDay()))
  return new Date(time).toISOString().slice(0, 10)
}

export function weekBefore(day: string): string {
  return new Date(Date.parse(day) - 7 * DAY_MS).toISOString().slice(0, 10)
}
