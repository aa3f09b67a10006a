const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }
const LONGEST_DAYS = 36_500

/**
 * How many seconds a duration is that is written as a number and a unit: `90d`, `12h`, `30m`.
 * @returns undefined where it is not written so, is nothing, or is longer than 36,500 days
 */
export function parseDuration(text: string): number | undefined {
  const [, count = '', unit = ''] = /^([0-9]{1,10})([smhdw])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit as keyof typeof SECONDS] ?? 0)
  return seconds > 0 && seconds <= LONGEST_DAYS * SECONDS.d ? seconds : undefined
}
