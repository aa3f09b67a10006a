import { PortfolioTransactionTypes } from '../src/schemas/portfolio-transaction.ts'
import type { Security } from './instruments.ts'
import { idOf, type Random } from './random.ts'
import { type AccountRow, decimalText, type PortfolioRow } from './rows.ts'

/** Security with its present price. A merger or a change of ISIN replaces `security`. */
export interface Stock {
  security: Security
  currency: string
  /** 1/100 of the currency. */
  price: bigint
  pays?: 'DIVIDENDS' | 'COUPON' | undefined
}

export interface When {
  day: string
  hour?: string | undefined
}

type Fields = Partial<PortfolioRow>

/** Units of a currency for one euro, in 1/10,000. */
const RATES: Record<string, bigint> = { USD: 11_200n, GBP: 8_650n, CHF: 10_300n, JPY: 1_312_500n }

/** Rows of one connection, in the order of time. It allows no sale of shares that a portfolio lacks. */
export class Ledger {
  readonly portfolio: PortfolioRow[] = []
  readonly account: AccountRow[] = []
  readonly #name: string
  readonly #random: Random
  readonly #held = new Map<string, bigint>()
  readonly #rates = { ...RATES }
  /** Number of rows so far, for identifiers. */
  #rows = 0
  /** Balance in 1/100,000 euro. */
  balance = 0n

  constructor(name: string, random: Random) {
    this.#name = name
    this.#random = random
  }

  /** Shares of a stock in a portfolio, in 1/1000. */
  held(portfolio: number, { security }: Stock): bigint {
    return this.#held.get(`${portfolio} ${security.id}`) ?? 0n
  }

  /**
   * Adds a row to a portfolio, and moves its shares.
   * @param titles 1/1000 share; by default the whole position
   */
  move(
    type: PortfolioRow['type'],
    { day, hour }: When,
    portfolio: number,
    stock: Stock,
    titles = this.held(portfolio, stock),
    fields: Fields = {},
  ): PortfolioRow {
    const held = this.held(portfolio, stock)
    const [impact] = PortfolioTransactionTypes[type]
    const moved = { '+': titles, '-': -titles, '=': 0n }[impact ?? '-']
    if (held + moved < 0n) throw new Error(`${type}: only ${held} of ${titles} are held on ${day}`)
    this.#held.set(`${portfolio} ${stock.security.id}`, held + moved)
    this.#rows += 1
    const row = {
      transactionId: idOf(`${this.#name} transaction ${this.#rows}`),
      portfolioId: idOf(`${this.#name} portfolio ${portfolio}`),
      type,
      titles: decimalText(titles, 3),
      currency: stock.currency,
      description: `${type.replaceAll('_', ' ').toLowerCase()}: ${stock.security.name}`,
      operationDateDay: day,
      valueDateDay: this.#random.chance(90) ? day : null,
      ...(hour && { operationDateHour: hour, originalOperationDateTz: 'Europe/Madrid' }),
      investment: stock.security.id,
      ...fields,
    }
    this.portfolio.push(row)
    return row
  }

  /** Returns price and amount: 1/1000 share times 1/100 currency has five decimals. */
  value({ currency }: Stock, titles: bigint, price: bigint): Fields {
    const amount = titles * price
    const terms = { price: decimalText(price, 2), amount: decimalText(amount, 5) }
    const rate = this.#rate(currency)
    if (rate === undefined) return terms
    const cents = (20n * amount + rate) / (2n * rate)
    return { ...terms, ...foreign(rate), amountBaseCurrency: decimalText(cents, 2) }
  }

  /** Returns an amount without a price, at the present rate. @param cents 1/100 of the currency */
  payment({ currency }: Stock, cents: bigint): Fields {
    const amount = decimalText(cents, 2)
    const rate = this.#rates[currency]
    if (rate === undefined) return { amount }
    const inEuro = (20_000n * cents + rate) / (2n * rate)
    return { amount, ...foreign(rate), amountBaseCurrency: decimalText(inEuro, 2) }
  }

  /** Adds a dividend or coupon, and its cash without the taxes. */
  pay(when: When, portfolio: number, stock: Stock): [PortfolioRow, AccountRow] {
    const titles = this.held(portfolio, stock)
    const price = stock.price / 250n + 1n
    const value = this.value(stock, titles, price)
    const amount = titles * price
    const share = (percent: bigint) => (amount * percent) / 100_000n
    const isForeign = stock.currency !== 'EUR'
    const [origin, destination] = isForeign ? [share(15n), share(4n)] : [0n, share(19n)]
    const taxes = decimalText(origin + destination, 2)
    const detail = {
      retentionFrom: decimalText(origin, 2),
      retentionTo: decimalText(destination, 2),
    }
    const type = stock.pays ?? 'DIVIDENDS'
    const row = this.move(type, when, portfolio, stock, titles, {
      ...value,
      commission: '0.00',
      taxes,
      ...(isForeign && { retentionDetail: detail }),
    })
    const { currency, exchangeRate = null, localCurrency = null } = { ...stock, ...value }
    const net = amount - 1_000n * (origin + destination)
    const cash = this.cash(type, when, net, 5, {
      currency,
      exchangeRate,
      localCurrency,
      taxes,
      investment: stock.security.id,
      description: String(row.description),
    })
    return [row, cash]
  }

  /** Adds a movement of the account; by default in euros, with two decimals. */
  cash(
    type: AccountRow['type'],
    { day, hour }: When,
    amount: bigint,
    scale: 2 | 5 = 2,
    fields: Partial<AccountRow> = {},
  ): AccountRow {
    this.#rows += 1
    const row = {
      movementId: idOf(`${this.#name} movement ${this.#rows}`),
      accountId: idOf(`${this.#name} account`),
      type,
      amount: decimalText(amount, scale),
      currency: 'EUR',
      operationDateDay: day,
      valueDateDay: day,
      ...(hour && { operationDateHour: hour }),
      ...fields,
    }
    if (row.currency === 'EUR') this.balance += amount * (scale === 2 ? 1_000n : 1n)
    this.account.push(row)
    return row
  }

  /** Buys dollars for euros. */
  exchange(when: When, cents: bigint): void {
    const rate = this.#rate('USD') as bigint
    const terms = { exchangeRate: decimalText(rate, 4) }
    this.cash('FOREX_WITHDRAWAL', when, -cents, 2, { ...terms, localCurrency: 'USD' })
    const dollars = (cents * rate) / 10_000n
    this.cash('FOREX_DEPOSIT', when, dollars, 2, { ...foreign(rate), currency: 'USD' })
  }

  /** Returns the rate of a currency, moved a little; undefined for the euro. */
  #rate(currency: string): bigint | undefined {
    const rate = this.#rates[currency]
    if (rate === undefined) return undefined
    const base = RATES[currency] as bigint
    // Rates stay within 3 % of their start.
    this.#rates[currency] = base + (base * BigInt(this.#random.between(-30, 30))) / 1_000n
    return rate
  }
}

const foreign = (rate: bigint) => ({ exchangeRate: decimalText(rate, 4), localCurrency: 'EUR' })

/** Links the rows of one event: the first two name each other, and all others name the first. */
export function link(first: PortfolioRow, second: PortfolioRow, ...others: PortfolioRow[]) {
  first.relatedTransaction = second.transactionId
  for (const row of [second, ...others]) row.relatedTransaction = first.transactionId
  return [first, second, ...others]
}
