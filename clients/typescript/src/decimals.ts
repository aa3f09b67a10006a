import type { Decimal } from './texts.ts'

/** Exact decimal: `units` * 10 ** -`scale`. */
export interface Exact {
  units: bigint
  scale: number
}

export const ZERO: Exact = { units: 0n, scale: 0 }

export function exactOf(text: string): Exact {
  const [whole = '0', fraction = ''] = text.split('.')
  return { units: BigInt(whole + fraction), scale: fraction.length }
}

export function add(a: Exact, b: Exact): Exact {
  const scale = Math.max(a.scale, b.scale)
  return { units: unitsOf(a, scale) + unitsOf(b, scale), scale }
}

export function negate({ units, scale }: Exact): Exact {
  return { units: -units, scale }
}

export function textOf({ units, scale }: Exact): Decimal {
  const sign = units < 0n ? '-' : ''
  const size = units < 0n ? -units : units
  const digits = String(size).padStart(scale + 1, '0')
  if (scale === 0) return `${sign}${digits}` as Decimal
  const point = digits.length - scale
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}` as Decimal
}

/**
 * Adds decimals without rounding. The sum has as many digits after the point as the decimal with the most.
 * Leave out the nulls yourself: the sum of an unknown amount is not known.
 * @throws TypeError if a value is not a decimal as text
 */
export function sum(decimals: Iterable<Decimal>): Decimal {
  let total = ZERO
  for (const decimal of decimals) {
    if (typeof decimal !== 'string' || !/^-?\d+(\.\d+)?$/.test(decimal))
      throw new TypeError('sum() adds decimals as text, such as "-406.20"; leave out null')
    total = add(total, exactOf(decimal))
  }
  return textOf(total)
}

function unitsOf({ units, scale: own }: Exact, scale: number): bigint {
  return units * 10n ** BigInt(scale - own)
}
