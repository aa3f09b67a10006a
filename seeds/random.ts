import { createHash } from 'node:crypto'

/** The same numbers on every machine and every day, from one seed. */
export interface Random {
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number
  oneOf<T>(items: readonly T[]): T
  /** True in so many cases of a hundred. */
  chance(percent: number): boolean
}

/** A generator of Lehmer's kind (minimal standard, modulus 2^31 - 1). */
export function randomFrom(seed: number): Random {
  let state = seed
  const between = (least: number, most: number) => {
    state = (state * 48_271) % 2_147_483_647
    return least + (state % (most - least + 1))
  }
  return {
    between,
    oneOf: (items) => items[between(0, items.length - 1)] as (typeof items)[number],
    chance: (percent) => between(1, 100) <= percent,
  }
}

/** The identifier of a thing of the demo world: a UUID made of its name. */
export function idOf(name: string): string {
  const bytes = createHash('sha256').update(`demo world: ${name}`).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
