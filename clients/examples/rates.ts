/** Amounts in the currency of a report, by the base amounts and the rates of the rows. */
import {
  type AccountTransaction,
  effectiveDay,
  type PortfolioTransaction,
} from '../typescript/src/index.ts'
import { Fraction } from './fraction.ts'

export type Row = PortfolioTransaction | AccountTransaction

type PortfolioField = 'titles' | 'amount' | 'amountBaseCurrency' | 'commission' | 'taxes'
type Direction = 'divisor' | 'factor'

/** A rate is right if it gives the base amount with this error, because institutions round. */
const TOLERANCE = new Fraction(1n, 100n)
/** The other direction must be wrong by ten times as much: a rate near 1 tells nothing. */
const CLEARLY = new Fraction(10n, 1n)

/**
 * Converts amounts to the currency of a report. No row names the base currency of its portfolio, so it is asked for, or a
 * row proves it: its `currency` is that of the report, and its `amountBaseCurrency` is its `amount`. Institutions differ in
 * what `exchangeRate` is: a divisor or a factor. Rows that have `amount`, `amountBaseCurrency` and `exchangeRate` tell it for
 * the connection.
 */
export class Rates {
  readonly currency: string
  readonly #directions: Set<Direction>
  /** Whether amountBaseCurrency is in the currency of the report. */
  readonly #isBase: boolean

  /** @param base currency of amountBaseCurrency, and of the report; otherwise it is EUR, and must be proved */
  constructor(transactions: Iterable<PortfolioTransaction>, base?: string) {
    const rows = [...transactions]
    this.currency = base ?? 'EUR'
    const known = rows.map(directionOf).filter((direction) => direction !== undefined)
    this.#directions = new Set(known)
    const proofs = rows.filter((row) => this.#proves(row))
    for (const row of proofs)
      if (!isSame(row.amount, row.amountBaseCurrency))
        throw new Error(
          `${nameOf(row)}: the base currency is not ${this.currency}, because amountBaseCurrency differs from amount. Set BASE_CURRENCY.`,
        )
    this.#isBase = base !== undefined || proofs.length > 0
  }

  /** A row in the currency of the report has the same amount twice, if that is the base currency. */
  #proves({ currency, amount, amountBaseCurrency }: PortfolioTransaction): boolean {
    const isKnown = amount !== null && amountBaseCurrency !== null
    return isKnown && currency === this.currency && Fraction.of(amount).over !== 0n
  }

  /**
   * Returns an amount of a row in the currency of the report: that of the institution, or by the rate of the row.
   * @throws Error if the row has no rate, or the base currency or the direction of the rate is not known
   */
  convert(row: Row, field: 'amount' | 'commission' | 'taxes'): Fraction {
    const isPortfolio = 'transactionId' in row
    const amount = isPortfolio ? numberOf(row, field) : Fraction.of(row[field])
    if (row.currency === this.currency) return amount
    if (isPortfolio && field === 'amount' && row.amountBaseCurrency !== null) {
      this.#expectBase(row)
      return numberOf(row, 'amountBaseCurrency')
    }
    if (amount.over === 0n) return amount
    const problem = `no rate from ${row.currency ?? 'no currency'} to ${this.currency}`
    if (row.exchangeRate === null) throw new Error(`${nameOf(row)}: ${problem}.`)
    const rate = Fraction.of(row.exchangeRate)
    if (rate.over === rate.under || rate.over === 0n)
      throw new Error(
        `${nameOf(row)}: ${problem}. exchangeRate is ${row.exchangeRate}, so nothing was converted.`,
      )
    const others = [row.currency, this.currency, null]
    if (!others.includes(row.localCurrency))
      throw new Error(
        `${nameOf(row)}: ${problem}. exchangeRate may be that to ${row.localCurrency}.`,
      )
    this.#expectBase(row)
    return this.#directionOf(row) === 'divisor' ? amount.by(rate) : amount.times(rate)
  }

  #expectBase(row: Row): void {
    if (this.#isBase) return
    const problem = `the base currency may be another one than ${this.currency}`
    throw new Error(`${nameOf(row)}: ${problem}. Set BASE_CURRENCY to that of the portfolios.`)
  }

  #directionOf(row: Row): Direction {
    const own = 'transactionId' in row ? directionOf(row) : undefined
    if (own !== undefined) return own
    const [direction, ...others] = this.#directions
    if (direction !== undefined && others.length === 0) return direction
    const problem = `exchangeRate ${row.exchangeRate} may be a divisor or a factor`
    const reason =
      direction === undefined
        ? 'no row of the connection has an amount in both currencies to tell it'
        : 'the rows of the connection have both'
    throw new Error(`${nameOf(row)}: ${problem}, and ${reason}.`)
  }
}

const nameOf = (row: Row) => `${row.type} of ${effectiveDay(row)}`

const isSame = (a: string | null, b: string | null) =>
  Fraction.of(a).minus(Fraction.of(b)).over === 0n

/** Returns what the rate of a row is, by its amounts in both currencies; undefined if they do not tell it. */
function directionOf(row: PortfolioTransaction): Direction | undefined {
  const { amount, amountBaseCurrency, exchangeRate } = row
  if (amount === null || amountBaseCurrency === null || exchangeRate === null) return undefined
  const [from, to, rate] = [amount, amountBaseCurrency, exchangeRate].map(Fraction.of)
  if (!from?.over || !to?.over || !rate?.over) return undefined
  const divided = from.by(rate).minus(to).size
  const multiplied = from.times(rate).minus(to).size
  const isRight = (error: Fraction) => error.isLess(to.size.times(TOLERANCE))
  if (isRight(divided) && divided.times(CLEARLY).isLess(multiplied)) return 'divisor'
  if (isRight(multiplied) && multiplied.times(CLEARLY).isLess(divided)) return 'factor'
  return undefined
}

/**
 * Returns a number of a portfolio row; 0 for null.
 * @throws Error if it is negative: only the account list has signs with one meaning
 */
export function numberOf(row: PortfolioTransaction, field: PortfolioField): Fraction {
  const value = Fraction.of(row[field])
  if (value.over >= 0n) return value
  const meaning = 'Institutions differ in what this means, so these rules do not know it.'
  throw new Error(`${nameOf(row)}: ${field} is negative. ${meaning}`)
}
