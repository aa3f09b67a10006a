/** Gains by FIFO in euros, by the rules of docs/sandbox.md. Other countries have other rules. */
import {
  type AccountTransaction,
  chronological,
  type PortfolioTransaction,
  positionEffect,
} from '../typescript/src/index.ts'

export type Row = PortfolioTransaction | AccountTransaction

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

  /** Rounds to cents, half a cent away from zero. */
  get cents(): string {
    const size = ((this.over < 0n ? -this.over : this.over) * 200n + this.under) / (2n * this.under)
    const digits = String(size).padStart(3, '0')
    return `${this.over < 0n && size > 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
  }
}

/** Shares of one purchase, with its day. */
interface Lot {
  day: string
  shares: Fraction
  cost: Fraction
}

/** Lots of each investment in each portfolio, the oldest purchase first. */
class Lots {
  readonly #held = new Map<string, Lot[]>()

  put(row: PortfolioTransaction, ...lots: Lot[]): void {
    const held = [...this.#of(row), ...lots]
    held.sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
    this.#held.set(keyOf(row), held)
  }

  /** Removes the shares of a row from the oldest lots. */
  take(row: PortfolioTransaction): Lot[] {
    const held = this.#of(row)
    const taken: Lot[] = []
    for (let left = numberOf(row, 'titles'); left.over > 0n && held.length > 0; ) {
      const { day, shares, cost } = held.shift() as Lot
      const rest = shares.minus(left)
      const part = rest.over > 0n ? left : shares
      const costOfPart = cost.times(part).by(shares)
      taken.push({ day, shares: part, cost: costOfPart })
      if (rest.over > 0n) held.unshift({ day, shares: rest, cost: cost.minus(costOfPart) })
      left = left.minus(part)
    }
    return taken
  }

  #of(row: PortfolioTransaction): Lot[] {
    return this.#held.get(keyOf(row)) ?? []
  }
}

const keyOf = (row: PortfolioTransaction) => `${row.portfolioId} ${row.investment}`

/** Returns each sale, and each cash payment of a merger, with its gain. */
export function* gainsByFifo(
  transactions: Iterable<PortfolioTransaction>,
): Generator<[PortfolioTransaction, Fraction]> {
  const rows = chronological(transactions)
  const lots = new Lots()
  const byId = new Map(rows.map((row) => [row.transactionId, row]))
  const payments = rows.filter(({ type }) => type === 'COMPENSATION')
  const cashRows = new Map(payments.map((row) => [row.relatedTransaction, row]))
  for (const row of rows) {
    const effect = positionEffect(row.type)
    const other = byId.get(row.relatedTransaction ?? '')
    const isPair = ['+-', '-+'].includes(`${effect}${positionEffect(other?.type ?? '')}`)
    if (effect === '+' && !isPair) {
      const cost = euros(row, 'amount').plus(charges(row))
      lots.put(row, { day: dayOf(row), shares: numberOf(row, 'titles'), cost })
    }
    if (effect !== '-') continue
    const taken = lots.take(row)
    const cost = taken.reduce((sum, lot) => sum.plus(lot.cost), Fraction.ZERO)
    if (other === undefined || !isPair) {
      yield [row, euros(row, 'amount').minus(charges(row)).minus(cost)]
    } else if (row.type === 'RIGHTS_CONVERSION_SELL') {
      const paid = euros(other, 'amount').plus(charges(other))
      const shares = numberOf(other, 'titles')
      lots.put(other, { day: dayOf(other), shares, cost: cost.plus(paid) })
    } else {
      // The shares become others, and keep their days and costs. Cash sells a part of them.
      const cashRow = cashRows.get(row.transactionId)
      let kept = Fraction.ONE
      if (cashRow) {
        const [cash, value] = [euros(cashRow, 'amount'), euros(other, 'amount')]
        if (value.plus(cash).over === 0n)
          throw new Error(
            `${cashRow.type} of ${dayOf(cashRow)}: neither cash nor shares have an amount.`,
          )
        kept = value.by(value.plus(cash))
        yield [cashRow, cash.minus(cost.minus(cost.times(kept)))]
      }
      const moved = taken.map((lot) => {
        const shares = lot.shares.times(numberOf(other, 'titles')).by(numberOf(row, 'titles'))
        return { day: lot.day, shares, cost: lot.cost.times(kept) }
      })
      lots.put(other, ...moved)
    }
  }
}

export function dayOf(row: Row): string {
  return String(row.operationDateDay ?? row.valueDateDay)
}

type PortfolioField = 'titles' | 'amount' | 'amountBaseCurrency' | 'commission' | 'taxes'

/** Returns a number of a portfolio row; 0 for null. Only the account list has signs with one meaning. */
function numberOf(row: PortfolioTransaction, field: PortfolioField): Fraction {
  const value = Fraction.of(row[field])
  if (value.over >= 0n) return value
  const meaning = 'Institutions differ in what this means, so these rules do not know it.'
  throw new Error(`${row.type} of ${dayOf(row)}: ${field} is negative. ${meaning}`)
}

/** Returns an amount of a row in euros: that of the institution, or by the rate of the row. */
export function euros(row: Row, field: 'amount' | 'commission' | 'taxes'): Fraction {
  const isPortfolio = 'transactionId' in row
  if (isPortfolio && field === 'amount' && row.amountBaseCurrency !== null)
    return numberOf(row, 'amountBaseCurrency')
  const amount = isPortfolio ? numberOf(row, field) : Fraction.of(row[field])
  if (row.currency === 'EUR' || amount.over === 0n) return amount
  if (row.exchangeRate === null)
    throw new Error(`${row.type} of ${dayOf(row)}: no rate from ${row.currency} to EUR.`)
  return amount.by(Fraction.of(row.exchangeRate))
}

function charges(row: PortfolioTransaction): Fraction {
  return euros(row, 'commission').plus(euros(row, 'taxes'))
}
