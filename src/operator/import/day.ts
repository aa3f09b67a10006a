const HYPHEN = 0x2d

/** Whether the bytes are a day that exists, as YYYY-MM-DD, in the years 0001 to 9999. */
export function isDay(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 10) return false
  if (bytes[start + 4] !== HYPHEN || bytes[start + 7] !== HYPHEN) return false
  const year = number(bytes, start, 4)
  const month = number(bytes, start + 5, 2)
  const day = number(bytes, start + 8, 2)
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

/** The number that so many digits make; NaN where one is no digit. */
function number(bytes: Buffer, start: number, digits: number): number {
  let result = 0
  for (let at = start; at < start + digits; at += 1) {
    const digit = (bytes[at] ?? 0) - 0x30
    result = digit >= 0 && digit <= 9 ? result * 10 + digit : Number.NaN
  }
  return result
}

function daysIn(year: number, month: number): number {
  if (month === 2) return isLeap(year) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?'
// PostgreSQL knows no offset of 16 hours or more, and no place on earth has one.
const OFFSET = '(?:Z|[+-](?:0[0-9]|1[0-5]):[0-5][0-9])'
const MOMENT = new RegExp(`^.{10}T${TIME}${OFFSET}$`, 'i')

/** Whether the text is a point in time with its offset (RFC 3339). */
export function isMoment(text: string): boolean {
  return MOMENT.test(text) && isDay(Buffer.from(text), 0, 10)
}
