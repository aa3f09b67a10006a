/** The bytes that mean something in JSON. */
export const LINE_BREAK = 0x0a
export const QUOTE = 0x22
export const COMMA = 0x2c
export const MINUS = 0x2d
export const POINT = 0x2e
export const ZERO = 0x30
export const COLON = 0x3a
export const BACKSLASH = 0x5c
export const CLOSING_BRACE = 0x7d

type Byte = number | undefined

/** A blank within a line. */
export function isBlank(byte: Byte): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

export function isDigit(byte: Byte): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

export function isSign(byte: Byte): boolean {
  return byte === MINUS || byte === 0x2b
}

/** What begins an exponent, `e` or `E`. */
export function isExponent(byte: Byte): boolean {
  return byte === 0x65 || byte === 0x45
}

/** A control character, which a string may hold only escaped; the end of the line is one. */
export function isControl(byte: Byte): boolean {
  return byte === undefined || byte < 0x20
}
