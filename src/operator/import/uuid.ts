const HEX = new Uint8Array(256)
for (const digit of Buffer.from('0123456789abcdefABCDEF')) HEX[digit] = 1
const HYPHEN = 0x2d

/** Whether the bytes are a UUID: 8, 4, 4, 4 and 12 hexadecimal digits, in any letter case. */
export function isUuid(bytes: Buffer, start: number, end: number): boolean {
  if (end - start !== 36) return false
  for (let index = 0; index < 36; index += 1) {
    const byte = bytes[start + index] ?? 0
    const isHyphen = index === 8 || index === 13 || index === 18 || index === 23
    if (isHyphen ? byte !== HYPHEN : HEX[byte] === 0) return false
  }
  return true
}
