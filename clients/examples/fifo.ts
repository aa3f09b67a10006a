/** Gains by FIFO in the currency of the rates, by the rules of docs/sandbox.md. Other countries have other rules. */
import {
  chronological,
  effectiveDay,
  type PortfolioTransaction,
  positionEffect,
} from '../typescript/src/index.ts'
import { Fraction } from './fraction.ts'
import { numberOf, type Rates } from './rates.ts'

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

  /**
   * Removes the shares of a row from the oldest lots.
   * @throws Error if there are not as many: this is a short sale, or rows are missing
   */
  take(row: PortfolioTransaction): Lot[] {
    const held = this.#of(row)
    const taken: Lot[] = []
    for (let left = numberOf(row, 'titles'); left.over > 0n; ) {
      const oldest = held.shift()
      if (oldest === undefined) {
        const problem = 'more shares leave than had arrived.'
        const meaning = 'A short sale has other rules, and a history may lack its beginning.'
        throw new Error(`${row.type} of ${effectiveDay(row)}: ${problem} ${meaning}`)
      }
      const { day, shares, cost } = oldest
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
  rates: Rates,
): Generator<[PortfolioTransaction, Fraction]> {
  const rows = chronological(transactions)
  const lots = new Lots()
  const money = (row: PortfolioTransaction, field: 'amount' | 'commission' | 'taxes') =>
    rates.convert(row, field)
  const charges = (row: PortfolioTransaction) => money(row, 'commission').plus(money(row, 'taxes'))
  const byId = new Map(rows.map((row) => [row.transactionId, row]))
  const payments = rows.filter(({ type }) => type === 'COMPENSATION')
  const cashRows = new Map(payments.map((row) => [row.relatedTransaction, row]))
  for (const row of rows) {
    // Negative titles of any row may cancel another row.
    numberOf(row, 'titles')
    const effect = positionEffect(row.type)
    const other = byId.get(row.relatedTransaction ?? '')
    const isPair = ['+-', '-+'].includes(`${effect}${positionEffect(other?.type ?? '')}`)
    if (effect === '+' && !isPair) {
      const cost = money(row, 'amount').plus(charges(row))
      lots.put(row, { day: effectiveDay(row), shares: numberOf(row, 'titles'), cost })
    }
    if (effect !== '-') continue
    const taken = lots.take(row)
    const cost = taken.reduce((sum, lot) => sum.plus(lot.cost), Fraction.ZERO)
    if (other === undefined || !isPair) {
      yield [row, money(row, 'amount').minus(charges(row)).minus(cost)]
    } else if (row.type === 'RIGHTS_CONVERSION_SELL') {
      const paid = money(other, 'amount').plus(charges(other))
      const shares = numberOf(other, 'titles')
      lots.put(other, { day: effectiveDay(other), shares, cost: cost.plus(paid) })
    } else {
      // The shares become others, and keep their days and costs. Cash sells a part of them.
      const cashRow = cashRows.get(row.transactionId)
      let kept = Fraction.ONE
      if (cashRow) {
        const [cash, value] = [money(cashRow, 'amount'), money(other, 'amount')]
        if (value.plus(cash).over === 0n)
          throw new Error(
            `${cashRow.type} of ${effectiveDay(cashRow)}: neither cash nor shares have an amount.`,
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
