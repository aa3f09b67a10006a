import { security } from './instruments.ts'
import { type Ledger, link, type Stock, type When } from './ledger.ts'
import type { Random } from './random.ts'

/** What an event of a stock needs. Each event has its own day and stock. */
export interface Scene {
  ledger: Ledger
  random: Random
  day: string
  stock: Stock
  /** Portfolios that hold the stock. */
  portfolios: number[]
  /** Stocks that spin-offs and grants have brought, oldest first. */
  minor: { portfolio: number; stock: Stock }[]
  number: number
  /** Number of the connection: its new securities have other ISINs than those of others. */
  series: number
}

/** Time before the market opens. The rows of an event follow each other by seconds. */
const second = ({ day }: Scene, seconds: number): When => ({ day, hour: `08:00:0${seconds}` })

function newSecurity({ number, series }: Scene, name: string) {
  return security(name, `ESDEMO${String(1_000 * series + number).padStart(5, '0')}`)
}

/** All shares of a stock become shares of the same or another security. */
function replace(
  scene: Scene,
  [outgoing, incoming]: [Parameters<Ledger['move']>[0], Parameters<Ledger['move']>[0]],
  to: Stock,
  [multiplier, divisor]: [bigint, bigint],
) {
  const { ledger, portfolios, stock } = scene
  return portfolios.map((portfolio) => {
    const titles = ledger.held(portfolio, stock)
    const received = (titles * multiplier) / divisor
    const value = incoming === 'MERGER_BUY' ? ledger.value(to, received, to.price) : {}
    const sold = ledger.move(outgoing, second(scene, 0), portfolio, stock)
    const bought = ledger.move(incoming, second(scene, 1), portfolio, to, received, value)
    link(sold, bought)
    return { portfolio, titles, sold, bought }
  })
}

function split(scene: Scene): void {
  const { stock, random } = scene
  const factor = BigInt(random.between(2, 3))
  // Companies split a high price, and merge shares of a low one.
  const isReverse = stock.price < 1_000n
  const ratio: [bigint, bigint] = isReverse ? [1n, factor] : [factor, 1n]
  replace(scene, ['SPLIT_SELL', 'SPLIT_BUY'], stock, ratio)
  stock.price = (stock.price * ratio[1]) / ratio[0]
}

/** Five old shares become three new ones, and a sixth of the value is paid in cash. */
function merger(scene: Scene): void {
  const { ledger, stock } = scene
  const name = `${stock.security.name.replace(/ Group \d+$/, '')} Group ${scene.number}`
  const price = (stock.price * 25n) / 18n
  const merged: Stock = { ...stock, security: newSecurity(scene, name), price }
  const exchanged = replace(scene, ['MERGER_SELL', 'MERGER_BUY'], merged, [3n, 5n])
  for (const { portfolio, titles, sold, bought } of exchanged) {
    // The cash of the sold shares, so no price: the position has none of them.
    const { price: _price, ...cash } = ledger.value(stock, titles, stock.price / 6n)
    const paid = ledger.move('COMPENSATION', second(scene, 2), portfolio, stock, 0n, cash)
    link(sold, bought, paid)
  }
  Object.assign(stock, merged)
}

function isinChange(scene: Scene): void {
  const { stock } = scene
  const changed: Stock = { ...stock, security: newSecurity(scene, stock.security.name) }
  replace(scene, ['ISIN_CHANGE_SELL', 'ISIN_CHANGE_BUY'], changed, [1n, 1n])
  Object.assign(stock, changed)
}

function productChange(scene: Scene): void {
  const { stock } = scene
  const name = `${stock.security.name.replace(/, clase \w+$/, '')}, clase ${scene.number}`
  const changed: Stock = {
    ...stock,
    security: newSecurity(scene, name),
    price: (stock.price * 4n) / 5n,
  }
  replace(scene, ['PRODUCT_CHANGE_SELL', 'PRODUCT_CHANGE_BUY'], changed, [5n, 4n])
  Object.assign(stock, changed)
}

/** Each whole share gets a right, twenty rights become a share, and the others are sold. */
function rights(scene: Scene): void {
  const { ledger, stock, portfolios } = scene
  const price = stock.price / 25n + 1n
  const right: Stock = {
    security: newSecurity(scene, `${stock.security.name}, derechos ${scene.number}`),
    currency: stock.currency,
    price,
  }
  for (const portfolio of portfolios) {
    const issued = (ledger.held(portfolio, stock) / 1_000n) * 1_000n
    const shares = (issued / 20_000n) * 1_000n
    const left = issued - 20n * shares
    if (shares === 0n) continue
    const issue = ledger.move('RIGHTS_ISSUE', second(scene, 0), portfolio, right, issued)
    const [converted] = link(
      ledger.move('RIGHTS_CONVERSION_SELL', second(scene, 1), portfolio, right, 20n * shares),
      ledger.move('RIGHTS_CONVERSION_BUY', second(scene, 2), portfolio, stock, shares),
      issue,
    )
    if (left === 0n || !converted) continue
    const value = ledger.value(right, left, price)
    const sold = ledger.move('RIGHTS_EXCLUSION', second(scene, 3), portfolio, right, left, value)
    sold.relatedTransaction = converted.transactionId
  }
}

/** Ten shares get one of the subsidiary; the cash is for fractions of it. */
function spinoff(scene: Scene): void {
  const { ledger, stock, portfolios, minor } = scene
  const subsidiary: Stock = {
    security: newSecurity(scene, `${stock.security.name} Filial ${scene.number}`),
    currency: stock.currency,
    price: (stock.price * 3n) / 2n,
  }
  stock.price = (stock.price * 17n) / 20n
  for (const portfolio of portfolios) {
    const titles = (ledger.held(portfolio, stock) / 10_000n) * 1_000n
    // The cash of a fraction of a share, so no price. In yen, there is no part of a unit.
    const cents = stock.currency === 'JPY' ? 3_700n : 37n
    const cash = ledger.payment(stock, cents)
    if (titles === 0n) continue
    link(
      ledger.move('SPINOFF', second(scene, 0), portfolio, subsidiary, titles),
      ledger.move('COMPENSATION', second(scene, 1), portfolio, stock, undefined, cash),
    )
    minor.push({ portfolio, stock: subsidiary })
  }
}

function grantWarrants(scene: Scene): void {
  const { ledger, stock, portfolios, minor, number } = scene
  const name = `${stock.security.name}, warrants ${number}`
  const warrant: Stock = { security: newSecurity(scene, name), currency: 'EUR', price: 12n }
  for (const portfolio of portfolios) {
    ledger.move('OFF_MARKET_BUY', second(scene, 0), portfolio, warrant, 100_000n)
    minor.push({ portfolio, stock: warrant })
  }
}

/** Ends the whole position of the oldest minor holding. */
function end(type: 'OFF_MARKET_SELL' | 'DELISTING' | 'EXPIRATION') {
  return (scene: Scene): void => {
    const { ledger, minor } = scene
    const isOf = ({ stock }: { stock: Stock }) =>
      /warrants/.test(stock.security.name) === (type === 'EXPIRATION')
    const index = minor.findIndex(isOf)
    for (const { portfolio, stock } of index < 0 ? [] : minor.splice(index, 1)) {
      const titles = ledger.held(portfolio, stock)
      const value = type === 'OFF_MARKET_SELL' ? ledger.value(stock, titles, stock.price) : {}
      ledger.move(type, second(scene, 0), portfolio, stock, titles, value)
    }
  }
}

function transfer(scene: Scene): void {
  const { ledger, stock, portfolios } = scene
  const [from = 0] = portfolios
  const titles = ledger.held(from, stock) / 2n
  if (titles === 0n) return
  link(
    ledger.move('TRANSFER_OUT', second(scene, 0), from, stock, titles),
    ledger.move('TRANSFER_IN', second(scene, 1), (from + 1) % 3, stock, titles),
  )
}

/** Shares come from another institution, or go to it. */
function external(type: Parameters<Ledger['move']>[0]) {
  return (scene: Scene): void => {
    const { ledger, stock, portfolios } = scene
    const [portfolio = 0] = portfolios
    const titles = ledger.held(portfolio, stock) / 3n
    if (titles > 0n) ledger.move(type, second(scene, 0), portfolio, stock, titles)
  }
}

function premium(scene: Scene): void {
  const { ledger, stock, portfolios } = scene
  if (stock.currency !== 'EUR') return
  for (const portfolio of portfolios) {
    const titles = ledger.held(portfolio, stock)
    const value = ledger.value(stock, titles, 7n)
    ledger.move('SHARE_ISSUE_PREMIUM', second(scene, 0), portfolio, stock, titles, value)
    const { id } = stock.security
    ledger.cash('RETURN_ON_CAPITAL', second(scene, 0), 7n * titles, 5, { investment: id })
  }
}

function unknown(scene: Scene): void {
  const { ledger, stock, portfolios } = scene
  for (const portfolio of portfolios) ledger.move('UNKNOWN', second(scene, 0), portfolio, stock)
}

/** Events in their order. Those that end a holding follow those that bring it. */
export const corporateEvents = [
  ...[split, spinoff, end('OFF_MARKET_SELL'), merger, grantWarrants, transfer, isinChange],
  ...[end('EXPIRATION'), rights, spinoff, end('DELISTING'), external('TRANSFER_IN')],
  ...[productChange, external('INHERITANCE_OR_DONATION_TRANSFER_IN'), external('TRANSFER_OUT')],
  ...[premium, external('INHERITANCE_OR_DONATION_TRANSFER_OUT'), unknown],
]

/** The event of the fund; all others are of companies. */
export const isOfFund = (event: (scene: Scene) => void) => event === productChange
