/**
 * Prints the portfolio transactions of a connection as an import file for Ghostfolio 2.
 * Run: node clients/typescript/examples/ghostfolio.ts > import.json
 * `quantity` times `unitPrice` is exactly the amount of a row. Otherwise the program refuses. It lists what it leaves out.
 */
import {
  checkPositions,
  chronological,
  type Decimal,
  effectiveDay,
  InvestmentData,
  type PortfolioTransaction,
  positionEffect,
  sum,
} from '../src/index.ts'

const {
  BASE_URL = 'http://127.0.0.1:3000',
  APP_TOKEN = 'idq_demo_wealth_this_token_is_public',
  CONNECTION_TOKEN = 'DEMOSMALL1',
} = process.env

/** The sides of splits and transfers are activities, too: they keep the number of shares right. */
const TRADES = { '+': 'BUY', '-': 'SELL', '=': undefined }
const PAYMENTS: Record<string, string> = { DIVIDENDS: 'DIVIDEND', COUPON: 'INTEREST' }

/** Histories that the file would show wrongly, because their direction is a guess. */
const REFUSED: Record<string, string> = {
  negativeShares: 'a row has negative titles. It may cancel another row.',
  bothSigns: 'titles of one type have both signs. One of them may mean a cancellation.',
  shortPosition: 'more shares leave than had arrived: a short sale, or rows are missing.',
}

/** @throws Error for a history that the file would show wrongly */
function refuseGuesses(rows: PortfolioTransaction[]): void {
  for (const check of checkPositions({ portfolioTransactions: () => rows }))
    for (const reason of check.reasons ?? []) {
      const problem = REFUSED[reason]
      if (problem !== undefined)
        throw new Error(
          `Investment ${check.investment} of portfolio ${check.portfolioId}: ${problem}`,
        )
    }
}

const refuse = (row: PortfolioTransaction, problem: string): never => {
  throw new Error(`${row.type} of ${effectiveDay(row)}: ${problem}`)
}
const isNegative = (decimal: Decimal | null) => /^-.*[1-9]/.test(decimal ?? '')
const isPositive = (decimal: Decimal | null) => /^[^-]*[1-9]/.test(decimal ?? '')

/**
 * Ghostfolio has no signs: the type has the direction. Many institutions write what is paid with a minus.
 * @throws Error if a sign may mean a cancellation
 */
function refuseSigns(rows: PortfolioTransaction[]): void {
  const paid = rows.filter(({ commission }) => isPositive(commission))
  const positive = new Set(rows.filter(({ amount }) => isPositive(amount)).map(({ type }) => type))
  for (const row of rows) {
    const { type, amount, commission } = row
    const isReceived = Object.hasOwn(PAYMENTS, type) || positionEffect(type) === '-'
    if (isReceived && isNegative(amount))
      refuse(row, 'amount is negative. It may cancel another row.')
    if (isNegative(amount) && positionEffect(type) === '+' && positive.has(type))
      refuse(row, 'amounts of this type have both signs. One of them may mean a cancellation.')
    if (isNegative(commission) && paid.length > 0)
      refuse(row, 'commissions have both signs. One of them may be paid back.')
  }
}

/** Ghostfolio accepts the codes of ISO 4217, and GBp for pence. */
const currencyOf = (code: string | null) =>
  code === 'GBX' ? 'GBp' : /^[A-Z]{3}$/.test(code ?? '') ? code : undefined

/** Ghostfolio reads JSON numbers as floats, which keep this many digits of any decimal. */
const FLOAT_DIGITS = 15
const isFloat = (decimal: string) =>
  decimal.replace(/\D/g, '').replace(/^0+|0+$/g, '').length <= FLOAT_DIGITS
const sizeOf = (decimal: Decimal | null) => (decimal ?? '0').replace('-', '')

/** @throws Error if a float would have other digits */
function number(row: PortfolioTransaction, decimal: string): number {
  if (!isFloat(decimal)) refuse(row, `a number of JSON would round ${decimal}.`)
  return Number(decimal)
}

/** Units of 10 ** -scale. */
function unitsOf(decimal: string): [units: bigint, scale: number] {
  const [whole = '', fraction = ''] = decimal.split('.')
  return [BigInt(whole + fraction), fraction.length]
}

function textOf(units: bigint, scale: number): string {
  const digits = String(units).padStart(scale + 1, '0')
  return scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** Digits of a price after the point: as many as fit. */
const PRICE_DIGITS = [0, 2, 4, 6, 8, 10, 12]
const ROUNDED_DIGITS = [6, 5, 4, 3, 2]

/**
 * Returns quantities and prices of a trade, whose products add up to its amount. `price` of the row is as the institution
 * quotes it: in per cent for a bond, of one share for an option on a hundred, or in pence. So the amount tells the price. If
 * amount by titles has no end as a decimal, a few shares get the rest.
 */
function partsOf(row: PortfolioTransaction): { quantity: string; unitPrice: string }[] {
  const [amount, amountScale] = unitsOf(sizeOf(row.amount))
  const [titles, titlesScale] = unitsOf(sizeOf(row.titles))
  // Price with some digits: the quotient of these two.
  const over = (digits: number) => amount * 10n ** BigInt(titlesScale + digits)
  const under = titles * 10n ** BigInt(amountScale)
  const quantity = textOf(titles, titlesScale)
  number(row, quantity)
  for (const digits of PRICE_DIGITS) {
    const unitPrice = textOf(over(digits) / under, digits)
    if (over(digits) % under === 0n && isFloat(unitPrice)) return [{ quantity, unitPrice }]
  }
  // The largest power of ten among the shares gets the rest, so that its price has an end.
  const zeros = String(titles).length - 1
  const few = 10n ** BigInt(zeros)
  for (const digits of ROUNDED_DIGITS) {
    const price = over(digits) / under
    const rest = over(digits) - price * under
    const scale = digits + amountScale + zeros
    const priceOfFew = textOf(price * 10n ** BigInt(amountScale + zeros) + rest, scale)
    if (price === 0n || !isFloat(priceOfFew)) continue
    return [
      { quantity: textOf(titles - few, titlesScale), unitPrice: textOf(price, digits) },
      { quantity: textOf(few, titlesScale), unitPrice: priceOfFew },
    ]
  }
  return refuse(row, `amount by titles is no price that a number of JSON keeps.`)
}

/** Amounts that are not in the file, by what they are. */
const leftOut = new Map<string, { currency: string; amounts: (Decimal | null)[] }>()

function leaveOut(what: string, { currency }: PortfolioTransaction, amount: Decimal | null): void {
  const key = `${what}\t${currency}`
  const found = leftOut.get(key) ?? { currency: currency ?? 'of no currency', amounts: [] }
  leftOut.set(key, found)
  found.amounts.push(amount)
}

/** Returns the activities of a row: none if the file cannot have it. */
function activitiesOf(row: PortfolioTransaction) {
  const { type, titles, amount, description, investment } = row
  const currency = currencyOf(row.currency)
  const without = (what: string) => {
    leaveOut(`${type} without ${what}`, row, amount)
    return []
  }
  if (!currency) return without('a currency of Ghostfolio')
  if (investment === null) return without('an investment')
  const common = {
    comment: description,
    currency,
    dataSource: 'MANUAL',
    date: `${effectiveDay(row)}T00:00:00.000Z`,
    symbol: investment,
  }
  const fee = number(row, sizeOf(row.commission))
  const payment = PAYMENTS[type]
  if (payment !== undefined) {
    if (amount === null) return without('an amount')
    return [{ ...common, type: payment, fee, quantity: 1, unitPrice: number(row, sizeOf(amount)) }]
  }
  const effect = positionEffect(type)
  const trade = effect && TRADES[effect]
  if (trade === undefined) return without('an activity of Ghostfolio')
  if (!isNegative(titles) && !isPositive(titles)) return without('shares')
  if (amount === null && trade === type) refuse(row, 'amount is not known.')
  if (amount === null) leaveOut(`the value of ${type}, whose price is 0`, row, amount)
  return partsOf(row).map(({ quantity, unitPrice }, index) => ({
    ...common,
    type: trade,
    fee: index === 0 ? fee : 0,
    quantity: number(row, quantity),
    unitPrice: number(row, unitPrice),
  }))
}

const activities: object[] = []
const assetProfiles = new Map<string, object>()

function write(rows: PortfolioTransaction[]): void {
  for (const row of chronological(rows)) {
    const found = activitiesOf(row)
    activities.push(...found)
    for (const { symbol, currency, dataSource } of found) {
      const name = row.description ?? symbol
      assetProfiles.set(symbol, { symbol, currency, dataSource, name })
    }
    const { taxes, retentionDetail: retained } = row
    const charges = {
      taxes,
      'tax retained': retained?.retentionFrom,
      'tax retained here': retained?.retentionTo,
    }
    for (const [what, charge] of Object.entries(charges))
      if (charge && Number(charge) !== 0) leaveOut(`${what} of ${row.type}`, row, charge)
  }
}

const rows: PortfolioTransaction[] = []
try {
  const api = new InvestmentData({ baseUrl: BASE_URL, token: APP_TOKEN })
  for await (const row of api.connection(CONNECTION_TOKEN).portfolioTransactions()) rows.push(row)
  refuseGuesses(rows)
  refuseSigns(rows)
  write(rows)
} catch (error) {
  console.error((error as Error).message)
  process.exit(1)
}

const meta = { date: new Date().toISOString(), version: 'investment-data-client' }
console.log(
  JSON.stringify({ meta, assetProfiles: [...assetProfiles.values()], activities }, null, 2),
)
console.error(
  `${activities.length} activities of ${rows.length} transactions. Left out: the account list`,
)
for (const [key, { currency, amounts }] of [...leftOut].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const [what] = key.split('\t')
  const known = amounts.filter((amount) => amount !== null)
  const total = known.length === 0 ? 'unknown' : sum(known)
  console.error(`Left out: ${what}, rows: ${amounts.length}, amount: ${total} ${currency}`)
}
