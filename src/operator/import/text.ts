import type { Value } from './json-value.ts'

/** Why a string cannot be stored as a text of so many characters, if it cannot. */
export function textFault(value: Value, maxLength: number): string | undefined {
  const { text, start, end } = value
  // Only escapes can bring these in: the source itself is UTF-8.
  if (text?.includes('\0')) return 'a NUL (\\u0000) cannot be stored in a text'
  if (text?.isWellFormed() === false) return 'the text holds one half of a surrogate pair'
  if (end - start <= maxLength || characters(value) <= maxLength) return undefined
  return `the text has more than ${maxLength} characters`
}

/** As PostgreSQL counts them: the bytes of UTF-8 that are not the continuation of another. */
function characters({ bytes, start, end }: Value): number {
  let count = 0
  for (let at = start; at < end; at += 1) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) count += 1
  }
  return count
}
