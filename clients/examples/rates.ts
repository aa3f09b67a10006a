/** Amounts in euros, by the base amounts and the rates of the rows. */
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
 * Converts amounts to euros. Institutions differ in what `exchangeRate` is: a divisor or a factor. Rows that have
 * `amount`, `amountBaseCurrency` and `exchangeRate` tell it for the connection.
 */
export class Rates {
  readonly #directions: Set<Direction>

  constructor(rows: Iterable<PortfolioTransaction>) {
    const known = [...rows].map(directionOf).filter((direction) => direction !== undefined)
    this.#directions = new Set(known)
  }

  /**
   * Returns an amount of a row in euros: that of the institution, or by the rate of the row.
   * @throws Error if the row has no rate, or the direction of the rate is not known
   */
  euros(row: Row, field: 'amount' | 'commission' | 'taxes'): Fraction {
    const isPortfolio = 'transactionId' in row
    if (isPortfolio && field === 'amount' && row.amountBaseCurrency !== null)
      return numberOf(row, 'amountBaseCurrency')
    const amount = isPortfolio ? numberOf(row, field) : Fraction.of(row[field])
    if (row.currency === 'EUR' || amount.over === 0n) return amount
    if (row.exchangeRate === null)
      throw new Error(`${row.type} of ${effectiveDay(row)}: no rate from ${row.currency} to EUR.`)
    const rate = Fraction.of(row.exchangeRate)
    return this.#directionOf(row) === 'divisor' ? amount.by(rate) : amount.times(rate)
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
    throw new Error(`${row.type} of ${effectiveDay(row)}: ${problem}, and ${reason}.`)
  }
}

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
  throw new Error(`${row.type} of ${effectiveDay(row)}: ${field} is negative. ${meaning}`)
}
