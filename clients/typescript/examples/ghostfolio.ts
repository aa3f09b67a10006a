/**
 * Prints the portfolio transactions of a connection as an import file for Ghostfolio 2.
 * Run: node clients/typescript/examples/ghostfolio.ts > import.json
 */
import {
  checkPositions,
  chronological,
  type Decimal,
  effectiveDay,
  InvestmentData,
  type PortfolioTransaction,
  positionEffect,
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
  for (const check of checkPositions({ portfolioTransactions: () => rows })) {
    const problem = REFUSED[check.reason ?? '']
    if (problem !== undefined)
      throw new Error(
        `Investment ${check.investment} of portfolio ${check.portfolioId}: ${problem}`,
      )
  }
}

/** Ghostfolio accepts the codes of ISO 4217, and GBp for pence. */
const currencyOf = (code: string | null) =>
  code === 'GBX' ? 'GBp' : /^[A-Z]{3}$/.test(code ?? '') ? code : undefined

/** Ghostfolio reads JSON numbers as floats, and has no signs: the type has the direction. */
const number = (decimal: Decimal | null) => Math.abs(Number(decimal ?? 0))

function activityOf(row: PortfolioTransaction) {
  const { type, titles, price, amount, commission, description, investment } = row
  const currency = currencyOf(row.currency)
  const common = {
    comment: description,
    currency,
    dataSource: 'MANUAL',
    date: `${effectiveDay(row)}T00:00:00.000Z`,
    fee: number(commission),
    symbol: investment,
  }
  if (!currency || investment === null) return undefined
  const payment = PAYMENTS[type]
  if (payment) return { ...common, type: payment, quantity: 1, unitPrice: number(amount) }
  const quantity = number(titles)
  const effect = positionEffect(type)
  const trade = effect && TRADES[effect]
  if (trade === undefined || quantity === 0) return undefined
  const unitPrice = price === null ? number(amount) / quantity : number(price)
  return { ...common, type: trade, quantity, unitPrice }
}

const rows: PortfolioTransaction[] = []
try {
  const api = new InvestmentData({ baseUrl: BASE_URL, token: APP_TOKEN })
  for await (const row of api.connection(CONNECTION_TOKEN).portfolioTransactions()) rows.push(row)
  refuseGuesses(rows)
} catch (error) {
  console.error((error as Error).message)
  process.exit(1)
}

const activities: object[] = []
const assetProfiles = new Map<string, object>()
let omitted = 0
for (const row of chronological(rows)) {
  const activity = activityOf(row)
  if (activity === undefined) {
    omitted += 1
    continue
  }
  activities.push(activity)
  const { symbol, currency, dataSource } = activity
  assetProfiles.set(String(symbol), {
    symbol,
    currency,
    dataSource,
    name: row.description ?? symbol,
  })
}
const meta = { date: new Date().toISOString(), version: 'investment-data-client' }
console.log(
  JSON.stringify({ meta, assetProfiles: [...assetProfiles.values()], activities }, null, 2),
)
console.error(`${activities.length} activities; ${omitted} transactions have no such activity`)
