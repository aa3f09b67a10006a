import { createHash } from 'node:crypto'

/** Pseudo-random numbers: the same for one seed, on every machine. */
export interface Random {
  /** Integer from `minimum` to `maximum`, both inclusive. */
  between(minimum: number, maximum: number): number
  oneOf<T>(items: readonly T[]): T
  chance(percent: number): boolean
}

/** Lehmer generator (minimal standard, modulus 2^31 - 1). */
export function randomFrom(seed: number): Random {
  let state = seed
  const between = (minimum: number, maximum: number) => {
    state = (state * 48_271) % 2_147_483_647
    return minimum + (state % (maximum - minimum + 1))
  }
  return {
    between,
    oneOf: (items) => items[between(0, items.length - 1)] as (typeof items)[number],
    chance: (percent) => between(1, 100) <= percent,
  }
}

/** UUID from a name. The documentation has these identifiers, so the hash input never changes. */
export function idOf(name: string): string {
  const bytes = createHash('sha256').update(`demo world: ${name}`).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
