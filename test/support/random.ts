/**
 * Random input of tests. The same seed gives the same input. `test/run.ts` sets TEST_SEED for all files, and prints it
 * after a failure.
 */
import fc from 'fast-check'

export { fc }

/** The seed of a run without TEST_SEED. */
export const DEFAULT_SEED = 1
/** TEST_RUNS of a run without it: a tenth of the runs of CI. */
export const DEFAULT_RUNS = 0.1

export const seed = Number(process.env.TEST_SEED ?? DEFAULT_SEED)
fc.configureGlobal({ seed })

const factor = Number(process.env.TEST_RUNS ?? DEFAULT_RUNS)

/**
 * Returns the number of runs of a property or a model.
 * @param all the number with TEST_RUNS=1
 */
export const runs = (all: number): number => Math.max(1, Math.round(all * factor))

export interface Random {
  /** Returns a number from 0 to 1, without 1. */
  next(): number
  /** Returns a whole number from 0, below the limit. */
  below(limit: number): number
  /** Returns true with this probability. */
  chance(probability: number): boolean
  oneOf<T>(values: readonly T[]): T
  /** Returns a UUID. */
  uuid(): string
}

/**
 * Creates a generator of random numbers.
 * @param name names the task that uses it. Tasks that run at the same time need generators of their own: the order of
 * their calls differs in each run.
 */
export function randomOf(name: string): Random {
  let state = seed
  for (const character of name) state = Math.imul(state, 31) + (character.codePointAt(0) ?? 0)
  // The generator mulberry32.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(next() * limit)
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    oneOf: <T>(values: readonly T[]) => values[below(values.length)] as T,
    uuid: () => {
      const digits = Array.from({ length: 30 }, () => below(16).toString(16)).join('')
      return digits.replace(/^(.{8})(.{4})(.{3})(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5')
    },
  }
}
