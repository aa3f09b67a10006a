/** A decimal from its digits as an integer and its scale: `decimalText(-12345n, 2)` is `-123.45`. */
export function decimalText(digits: bigint, scale: number): string {
  const sign = digits < 0n ? '-' : ''
  const text = String(digits < 0n ? -digits : digits).padStart(scale + 1, '0')
  return scale === 0 ? sign + text : `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}
