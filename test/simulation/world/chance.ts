/**
 * Returns a number from 0 to 1, without 1, that depends on the seed and on what it is for. A generator would give all later
 * decisions other numbers when a schedule shrinks.
 */
export function chance(seed: number, ...purpose: (string | number)[]): number {
  let mixed = seed | 0
  for (const part of purpose) {
    if (typeof part === 'number') mixed = mix(mixed ^ Math.imul(part + 1, 0x9e3779b1))
    else for (let at = 0; at < part.length; at += 1) mixed = mix(mixed ^ part.charCodeAt(at))
  }
  return (mix(mixed) >>> 0) / 2 ** 32
}

function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
