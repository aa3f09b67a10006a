/** Exact fraction. Numbers of JavaScript would round, and a part of a lot may have no end as a decimal. */
export class Fraction {
  static readonly ZERO = new Fraction(0n, 1n)
  static readonly ONE = new Fraction(1n, 1n)
  readonly over: bigint
  readonly under: bigint

  constructor(over: bigint, under: bigint) {
    let [divisor, rest] = [under, over]
    while (rest !== 0n) [divisor, rest] = [rest, divisor % rest]
    if (divisor < 0n !== under < 0n) divisor = -divisor
    this.over = over / divisor
    this.under = under / divisor
  }

  static of(decimal: string | null): Fraction {
    const [whole = '', digits = ''] = (decimal ?? '0').split('.')
    return new Fraction(BigInt(whole + digits), 10n ** BigInt(digits.length))
  }

  plus({ over, under }: Fraction): Fraction {
    return new Fraction(this.over * under + over * this.under, this.under * under)
  }

  minus({ over, under }: Fraction): Fraction {
    return this.plus(new Fraction(-over, under))
  }

  times({ over, under }: Fraction): Fraction {
    return new Fraction(this.over * over, this.under * under)
  }

  by({ over, under }: Fraction): Fraction {
    return new Fraction(this.over * under, this.under * over)
  }

  get size(): Fraction {
    return this.over < 0n ? new Fraction(-this.over, this.under) : this
  }

  isLess({ over, under }: Fraction): boolean {
    return this.over * under < over * this.under
  }

  /** Rounds to cents, half a cent away from zero. */
  get cents(): string {
    const size = ((this.over < 0n ? -this.over : this.over) * 200n + this.under) / (2n * this.under)
    const digits = String(size).padStart(3, '0')
    return `${this.over < 0n && size > 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
  }
}
