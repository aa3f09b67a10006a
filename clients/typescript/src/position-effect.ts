import { EFFECTS } from './rows.ts'

/** `+` adds `titles` to the position, `-` removes them; with `=` they are the size of the position. */
export type PositionEffect = '+' | '-' | '='

/** Returns the effect of a type on the position; undefined for EXPIRATION and for unknown types. */
export function positionEffect(type: string): PositionEffect | undefined {
  return Object.hasOwn(EFFECTS, type) ? EFFECTS[type as keyof typeof EFFECTS] : undefined
}
