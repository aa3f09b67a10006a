import { FIRST_DAY, weekdayAfter } from './calendar.ts'
import { corporateEvents, isOfFund } from './corporate-events.ts'
import { instruments } from './instruments.ts'
import { Ledger, type Stock, type When } from './ledger.ts'
import { idOf, type Random, randomFrom } from './random.ts'
import { type AccountRow, type ConnectionRows, decimalText, type PortfolioRow } from './rows.ts'

interface Plan {
  /** Part of every identifier; different for each connection. */
  name: string
  seed: number
  from: string
  /** Day on which the institution states the rows. */
  to: string
  maximumPerDay: number
}

const PORTFOLIOS = [0, 1, 2]
/** Weekdays from one corporate event to the next. */
const EVENT_EVERY = 30

/** Generates the history of three portfolios and their account, weekday by weekday. */
export function busyPortfolio(plan: Plan): ConnectionRows {
  const random = randomFrom(plan.seed)
  const ledger = new Ledger(plan.name, random)
  const stocks = instruments.map(({ id, name, isin, currency, price, pays }): Stock => {
    return { security: { id, name, isin }, currency, price: BigInt(price), pays }
  })
  const days = new Days(plan, ledger, stocks, random)
  for (let day = plan.from; day <= plan.to; day = weekdayAfter(day)) days.add(day)
  return { portfolio: ledger.portfolio, account: ledger.account, orders: [] }
}

class Days {
  readonly #plan: Plan
  readonly #ledger: Ledger
  readonly #stocks: Stock[]
  readonly #random: Random
  readonly #minor: { portfolio: number; stock: Stock }[] = []
  /** Stocks without a row on the day: rows of one stock on one day have no order without hours. */
  #free: Stock[] = []
  #count = 0
  #month = ''
  #months = 0
  #events = 0
  /** Movements that a refund may give back. */
  readonly #last: Record<string, bigint | undefined> = {}

  constructor(plan: Plan, ledger: Ledger, stocks: Stock[], random: Random) {
    this.#plan = plan
    this.#ledger = ledger
    this.#stocks = stocks
    this.#random = random
  }

  add(day: string): void {
    this.#free = [...this.#stocks]
    this.#count += 1
    if (day.slice(0, 7) !== this.#month) {
      this.#month = day.slice(0, 7)
      this.#addCash(day)
    }
    if (this.#count % EVENT_EVERY === 15) this.#addEvent(day)
    // The two days before the first `demo advance` have rows for it to change.
    const isSteady = weekdayAfter(day) >= FIRST_DAY && this.#plan.name === 'large'
    if (isSteady) this.#addSteady(day)
    else
      for (let left = this.#random.between(0, this.#plan.maximumPerDay); left > 0; left -= 1)
        this.#addTransaction({ day, hour: hourOf(this.#random) })
  }

  /** Takes one of the stocks that have no row on this day. */
  #take(allowed: (stock: Stock) => boolean): Stock | undefined {
    const choice = this.#free.filter(allowed)
    if (choice.length === 0) return undefined
    const stock = this.#random.oneOf(choice)
    this.#free.splice(this.#free.indexOf(stock), 1)
    return stock
  }

  #addTransaction(when: When): void {
    const [ledger, random] = [this.#ledger, this.#random]
    const stock = this.#take(() => true)
    const portfolio = random.oneOf(PORTFOLIOS)
    if (stock === undefined) return
    const pays = ledger.held(portfolio, stock) > 0n && random.chance(25) && stock.pays
    if (pays) this.#pay(when, portfolio, stock)
    else this.#trade(when, portfolio, stock)
  }

  #pay(when: When, portfolio: number, stock: Stock) {
    const rows = this.#ledger.pay(when, portfolio, stock)
    if (stock.currency === 'EUR') this.#last.DIVIDENDS = BigInt(rows[1].amount.replace('.', ''))
    return rows
  }

  /** Buys shares, or sells half of the position. One broker charges the account for each trade. */
  #trade(when: When, portfolio: number, stock: Stock): void {
    const [ledger, random] = [this.#ledger, this.#random]
    stock.price += (stock.price * BigInt(random.between(-20, 21))) / 1_000n
    const held = ledger.held(portfolio, stock)
    const sells = held > 1_000n && random.chance(35)
    const titles = sells ? held / 2n : BigInt(random.between(1, 80)) * 500n
    const isCharged = portfolio === 0 && stock.currency === 'EUR'
    const fee = isCharged ? BigInt(random.between(100, 2_500)) : 0n
    const row = ledger.move(sells ? 'SELL' : 'BUY', when, portfolio, stock, titles, {
      ...ledger.value(stock, titles, stock.price),
      commission: decimalText(fee, 2),
      taxes: '0',
    })
    if (!isCharged) return
    this.#last.FEES = fee
    ledger.cash('FEES', when, -fee, 2, { description: row.description ?? null })
  }

  #addEvent(day: string): void {
    const event = corporateEvents[this.#events % corporateEvents.length]
    const [etf, bond] = [this.#stocks[10], this.#stocks[11]]
    const fund = this.#stocks[9]
    const holders = (stock: Stock) => PORTFOLIOS.filter((n) => this.#ledger.held(n, stock) > 0n)
    const isHeld = (stock: Stock) => holders(stock).length > 0
    const isPossible = (stock: Stock) =>
      event && isOfFund(event) ? stock === fund : ![fund, etf, bond].includes(stock)
    const stock = this.#take((stock) => isPossible(stock) && isHeld(stock))
    if (event === undefined || stock === undefined) return
    this.#events += 1
    event({
      ledger: this.#ledger,
      random: this.#random,
      day,
      stock,
      portfolios: holders(stock),
      minor: this.#minor,
      number: this.#events,
      series: this.#plan.seed,
    })
  }

  /** Adds the cash of a month: a deposit, and one other movement in turn. */
  #addCash(day: string): void {
    const ledger = this.#ledger
    const deposit = BigInt(this.#random.between(50_000, 250_000))
    ledger.cash('DEPOSIT', { day, hour: '07:00:00' }, deposit)
    const when = { day, hour: '07:15:00' }
    const last = this.#last
    const giveBack = (type: AccountRow['type'], amount: bigint | undefined, scale: 2 | 5 = 2) => {
      if (amount !== undefined) ledger.cash(type, when, amount, scale)
    }
    const moves = [
      () => ledger.cash('WITHDRAWAL', when, -ledger.balance / 4_000n),
      () => ledger.exchange(when, 50_000n),
      () => ledger.cash('GIFT', when, 2_500n),
      () => {
        const { amount } = ledger.cash('INTEREST', when, ledger.balance / 100n, 5)
        const taxes = (BigInt(amount.replace('.', '')) * 19n) / 100_000n
        last.TAXES = taxes
        ledger.cash('TAXES', { day, hour: '07:15:01' }, -taxes)
      },
      () => giveBack('TAX_REFUND', last.TAXES),
      () => giveBack('FEES_REFUND', last.FEES),
      () => ledger.cash('INTEREST_CHARGE', when, -ledger.balance / 1_000_000n - 1n),
      () => ledger.cash('UNKNOWN', when, -1n),
      () => {
        last.DIVIDEND_RETENTION = last.DIVIDENDS
        if (last.DIVIDENDS) ledger.cash('DIVIDEND_RETENTION', when, -last.DIVIDENDS, 5)
      },
      () => giveBack('DIVIDEND_RETENTION_REFUND', last.DIVIDEND_RETENTION, 5),
    ]
    moves[this.#months % moves.length]?.()
    this.#months += 1
  }

  /**
   * Adds a day that `demo advance` can reach: a trade, a payment that is UNKNOWN on its first day, and a trade that the
   * institution corrects on the next day and cancels on the day after.
   */
  #addSteady(day: string): void {
    const [ledger, random] = [this.#ledger, this.#random]
    const etf = this.#stocks[10] as Stock
    this.#free.splice(this.#free.indexOf(etf), 1)
    const payers = this.#free.flatMap((stock) =>
      PORTFOLIOS.filter((n) => stock.pays && ledger.held(n, stock) > 0n).map((portfolio) => ({
        stock,
        portfolio,
      })),
    )
    const { stock, portfolio } = random.oneOf(payers)
    this.#free.splice(this.#free.indexOf(stock), 1)
    const [payment, cash] = this.#pay({ day, hour: '10:30:00' }, portfolio, stock)
    if (day === this.#plan.to) {
      ledger.portfolio.splice(-1, 1, withoutType(payment))
      ledger.account.splice(-1, 1, withoutTypeOfCash(cash))
    }
    const traded = this.#take(({ currency }) => currency === 'EUR')
    if (traded) this.#trade({ day, hour: '11:15:00' }, 0, traded)
    this.#addCancelled(day, etf)
  }

  #addCancelled(day: string, etf: Stock): void {
    const { name, to } = this.#plan
    const next = weekdayAfter(day)
    if (to > next) return
    const [price, fee] = to === next ? [etf.price + 1n, 395n] : [etf.price, 495n]
    const when = { operationDateDay: day, valueDateDay: day, operationDateHour: '16:45:00' }
    const description = `buy: ${etf.security.name}`
    this.#ledger.portfolio.push({
      transactionId: idOf(`${name} transaction of ${day}`),
      portfolioId: idOf(`${name} portfolio 0`),
      type: 'BUY',
      titles: '2.500',
      ...this.#ledger.value(etf, 2_500n, price),
      commission: decimalText(fee, 2),
      taxes: '0',
      currency: etf.currency,
      description,
      ...when,
      originalOperationDateTz: 'Europe/Madrid',
      investment: etf.security.id,
    })
    this.#ledger.account.push({
      movementId: idOf(`${name} movement of ${day}`),
      accountId: idOf(`${name} account`),
      type: 'FEES',
      amount: decimalText(-fee, 2),
      currency: 'EUR',
      description,
      ...when,
    })
  }
}

/** Returns one of few times, so that transactions share a second, or undefined. */
function hourOf(random: Random): string | undefined {
  const hour = String(random.between(9, 16)).padStart(2, '0')
  return random.chance(80) ? `${hour}:${random.oneOf(['00', '15', '30'])}:00` : undefined
}

/** A payment that is not classified: its shares are the position, as those of the payment. */
function withoutType(row: PortfolioRow): PortfolioRow {
  const { price, amount, amountBaseCurrency, exchangeRate, taxes, retentionDetail, ...known } = row
  return { ...known, type: 'UNKNOWN', commission: null, description: 'movimiento sin clasificar' }
}

function withoutTypeOfCash({ taxes, investment, ...row }: AccountRow): AccountRow {
  return { ...row, type: 'UNKNOWN', description: 'abono sin clasificar' }
}
