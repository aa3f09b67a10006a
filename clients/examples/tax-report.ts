/**
 * Reports realised gains by FIFO, dividends and withheld taxes of each year, in euros.
 * Run: node clients/examples/tax-report.ts
 * It keeps a copy in the file COPY, and reads only the changes the next time.
 */
import { DatabaseSync } from 'node:sqlite'
import {
  type AccountTransaction,
  checkPositions,
  chronological,
  InvestmentData,
  InvestmentDataError,
  type PortfolioTransaction,
  positionEffect,
  SqliteStore,
} from '../typescript/src/index.ts'

const {
  BASE_URL = 'http://127.0.0.1:3000',
  APP_TOKEN = 'idq_demo_wealth_this_token_is_public',
  CONNECTION_TOKEN = 'DEMOSMALL1',
  COPY = 'tax-report.db',
} = process.env
const store = new SqliteStore(new DatabaseSync(COPY), 'my user')
const api = new InvestmentData({ baseUrl: BASE_URL, token: APP_TOKEN })
const synced = await api
  .connection(CONNECTION_TOKEN)
  .syncTransactions(store)
  .catch((error) => {
    // The user has removed the connection.
    if (error instanceof InvestmentDataError && error.code === 'connection_not_found')
      store.delete()
    console.error(error.message)
    process.exit(1)
  })

/** Exact fraction: numbers of JavaScript would round, and a part of a lot has no end as a decimal. */
type Fraction = readonly [over: bigint, under: bigint]
const ZERO: Fraction = [0n, 1n]
function fraction(over: bigint, under: bigint): Fraction {
  let [a, b] = [over, under]
  while (b !== 0n) [a, b] = [b, a % b]
  return a < 0n ? [over / -a, under / -a] : [over / a, under / a]
}
function of(text: string | null): Fraction {
  const [whole = '', digits = ''] = (text ?? '0').split('.')
  return fraction(BigInt(whole + digits), 10n ** BigInt(digits.length))
}
const plus = ([a, b]: Fraction, [c, d]: Fraction) => fraction(a * d + c * b, b * d)
const minus = (one: Fraction, [c, d]: Fraction) => plus(one, [-c, d])
const times = ([a, b]: Fraction, [c, d]: Fraction) => fraction(a * c, b * d)
const by = (one: Fraction, [c, d]: Fraction) => times(one, c < 0n ? [-d, -c] : [d, c])
const sum = (all: Fraction[]) => all.reduce(plus, ZERO)

interface Lot {
  /** Day of the purchase. */
  day: string
  shares: Fraction
  cost: Fraction
}
type Row = PortfolioTransaction | AccountTransaction
const lots = new Map<string, Lot[]>()
const years = new Map<string, Record<'gain' | 'gross' | 'net' | 'tax', Fraction>>()
const dayOf = (row: Row) => String(row.operationDateDay ?? row.valueDateDay)

function add(row: Row, column: 'gain' | 'gross' | 'net' | 'tax', amount: Fraction): void {
  const year = dayOf(row).slice(0, 4)
  const figures = years.get(year) ?? { gain: ZERO, gross: ZERO, net: ZERO, tax: ZERO }
  years.set(year, { ...figures, [column]: plus(figures[column], amount) })
}
function euros(row: Row, ...names: ('amount' | 'commission' | 'taxes')[]): Fraction {
  const base = 'amountBaseCurrency' in row ? row.amountBaseCurrency : null
  if (names[0] === 'amount' && base !== null) return of(base)
  const amount = sum(names.map((name) => of(row[name])))
  return row.currency === 'EUR' || amount[0] === 0n ? amount : by(amount, of(row.exchangeRate))
}
function put(row: PortfolioTransaction, added: Lot[]): void {
  const all = [...(lots.get(`${row.portfolioId} ${row.investment}`) ?? []), ...added]
  all.sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0))
  lots.set(`${row.portfolioId} ${row.investment}`, all)
}
/** Removes shares from the oldest lots. */
function take(row: PortfolioTransaction): Lot[] {
  const held = lots.get(`${row.portfolioId} ${row.investment}`) ?? []
  const taken: Lot[] = []
  for (let left = of(row.titles); left[0] > 0n; ) {
    const lot = held.shift()
    if (lot === undefined) break
    const rest = minus(lot.shares, left)
    const shares = rest[0] > 0n ? left : lot.shares
    const cost = by(times(lot.cost, shares), lot.shares)
    taken.push({ ...lot, shares, cost })
    if (rest[0] > 0n) held.unshift({ ...lot, shares: rest, cost: minus(lot.cost, cost) })
    left = minus(left, shares)
  }
  return taken
}

const rows = chronological(store.portfolioTransactions())
const byId = new Map(rows.map((row) => [row.transactionId, row]))
const payments = rows.filter(({ type }) => type === 'COMPENSATION')
const cashOf = new Map(payments.map((row) => [row.relatedTransaction, row]))
for (const row of rows) {
  const effect = positionEffect(row.type)
  const other = byId.get(row.relatedTransaction ?? '')
  const otherEffect = positionEffect(other?.type ?? '')
  const charges = euros(row, 'commission', 'taxes')
  if (row.type === 'DIVIDENDS') {
    add(row, 'gross', euros(row, 'amount'))
    add(row, 'tax', euros(row, 'taxes'))
  } else if (effect === '+' && otherEffect !== '-') {
    const cost = plus(euros(row, 'amount'), charges)
    put(row, [{ day: dayOf(row), shares: of(row.titles), cost }])
  } else if (effect === '-') {
    const taken = take(row)
    const cost = sum(taken.map((lot) => lot.cost))
    if (other === undefined || otherEffect !== '+') {
      add(row, 'gain', minus(minus(euros(row, 'amount'), charges), cost))
      continue
    }
    // The shares become others, and keep their days and costs. Cash sells a part of them.
    const cashRow = cashOf.get(row.transactionId)
    const cash = cashRow ? euros(cashRow, 'amount') : ZERO
    const value = euros(other, 'amount')
    const kept: Fraction = cashRow ? by(value, plus(value, cash)) : [1n, 1n]
    if (cashRow) add(cashRow, 'gain', minus(cash, minus(cost, times(cost, kept))))
    const ratio = by(of(other.titles), of(row.titles))
    const move = (lot: Lot) => {
      return { day: lot.day, shares: times(lot.shares, ratio), cost: times(lot.cost, kept) }
    }
    const paid = plus(value, euros(other, 'commission', 'taxes'))
    const converted = { day: dayOf(other), shares: of(other.titles), cost: plus(cost, paid) }
    put(other, row.type === 'RIGHTS_CONVERSION_SELL' ? [converted] : taken.map(move))
  }
}
for (const row of store.accountTransactions())
  if (row.type === 'DIVIDENDS') add(row, 'net', euros(row, 'amount'))

function cents([over, under]: Fraction): string {
  const size = ((over < 0n ? -over : over) * 200n + under) / (2n * under)
  const digits = String(size).padStart(3, '0')
  return `${over < 0n && size > 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}
console.log('Data of', store.refreshedAt()?.toISOString().slice(0, 10) ?? 'an unknown day')
const { portfolio: one, account: two } = synced
const counts = [one.inserted + two.inserted, one.updated + two.updated, one.removed + two.removed]
console.log(`Since the last run: ${counts[0]} new, ${counts[1]} changed, ${counts[2]} removed`)
for (const [year, { gain, gross, net, tax }] of [...years].sort()) {
  const dividends = `dividends ${cents(gross)} gross and ${cents(net)} net`
  console.log(`${year}: gains ${cents(gain)}, ${dividends}, withheld ${cents(tax)}`)
}
for (const { investment, status, verifiedFrom, firstGap: gap } of checkPositions(store)) {
  const text = status === 'complete' ? `complete since ${verifiedFrom}` : status
  const found = gap && `expected ${gap.expected}, found ${gap.found} on ${gap.day}`
  console.log(investment, found ?? text)
}
