import * as json from './json-bytes.ts'
import type { LineCursor } from './line-cursor.ts'

/**
 * Steps over a JSON number, which may not begin with a zero that other digits follow.
 * @returns whether it has an exponent
 * @throws NotJson
 */
export function scanNumber(cursor: LineCursor): boolean {
  const { bytes } = cursor
  if (bytes[cursor.at] === json.MINUS) cursor.at += 1
  if (bytes[cursor.at] === json.ZERO) cursor.at += 1
  else scanDigits(cursor)
  if (bytes[cursor.at] === json.POINT) {
    cursor.at += 1
    scanDigits(cursor)
  }
  if (!json.isExponent(bytes[cursor.at])) return false
  cursor.at += 1
  if (json.isSign(bytes[cursor.at])) cursor.at += 1
  scanDigits(cursor)
  return true
}

function scanDigits(cursor: LineCursor): void {
  const start = cursor.at
  let end = start
  while (json.isDigit(cursor.bytes[end])) end += 1
  cursor.at = end
  if (end === start) throw cursor.unexpected('a digit is expected')
}
