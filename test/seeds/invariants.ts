import {
  chronological,
  dayOf,
  effectOf,
  Fraction,
  holdingOf,
  type Row,
  walk,
} from '../../src/http/docs-page/calculator.js'

/** Types that come in pairs: the outgoing one and the incoming one. */
const PAIRS: Record<string, string> = {
  SPLIT_SELL: 'SPLIT_BUY',
  MERGER_SELL: 'MERGER_BUY',
  ISIN_CHANGE_SELL: 'ISIN_CHANGE_BUY',
  PRODUCT_CHANGE_SELL: 'PRODUCT_CHANGE_BUY',
  RIGHTS_CONVERSION_SELL: 'RIGHTS_CONVERSION_BUY',
}
const INCOMING = new Set(Object.values(PAIRS))
const REFUNDS: Record<string, string> = {
  TAX_REFUND: 'TAXES',
  FEES_REFUND: 'FEES',
  DIVIDEND_RETENTION_REFUND: 'DIVIDEND_RETENTION',
}
const PAYMENTS = ['DIVIDENDS', 'COUPON']
const HALF_A_CENT = Fraction.of('0.005')

const difference = (a: Fraction, b: Fraction) => {
  const found = a.minus(b)
  return found.sign < 0 ? new Fraction(-found.over, found.under) : found
}

/** Checks that a history is possible, and returns what it found. `problems` is empty if all is right. */
export function checkHistory(portfolio: Row[], account: Row[]) {
  const { statements, negative } = walk(portfolio)
  const problems = [
    ...negative.map((row) => `${say(row)} leaves a negative position`),
    ...statements
      .filter(({ stated, computed }) => !stated.equals(computed))
      .map(({ row, stated, computed }) =>
        [say(row), `states ${stated.decimal} shares instead of ${computed.decimal}`].join(' '),
      ),
    ...portfolio.flatMap(problemsOfTerms),
    ...problemsOfRelations(portfolio),
    ...problemsOfOrder(portfolio),
    ...problemsOfPairs(portfolio),
    ...problemsOfPayments(portfolio, account),
    ...problemsOfCash(portfolio, account),
  ]
  const days = new Set([...portfolio, ...account].map(dayOf))
  for (const day of days)
    if ([0, 6].includes(new Date(day).getUTCDay())) problems.push(`${day} is on a weekend`)
  return {
    problems,
    counts: {
      rows: portfolio.length,
      movements: account.length,
      statements: statements.length,
      days: days.size,
    },
  }
}

const say = (row: Row) => `${row.type} of ${dayOf(row)} ${row.transactionId ?? ''}`

/** A trade has shares, price and amount; an amount is shares times price, and fits its euros. */
function problemsOfTerms(row: Row): string[] {
  const { type, titles, price, amount, amountBaseCurrency, exchangeRate } = row
  const isTrade = ['BUY', 'SELL'].includes(type)
  if (isTrade && (titles === null || price === null || amount === null))
    return [`${say(row)} has no shares, price or amount`]
  const found: string[] = []
  if (titles && price && amount) {
    const product = Fraction.of(titles).times(Fraction.of(price))
    if (difference(product, Fraction.of(amount)).minus(HALF_A_CENT).sign > 0)
      found.push(`${say(row)}: ${titles} times ${price} is not ${amount}`)
  }
  if (amount && amountBaseCurrency) {
    const converted = Fraction.of(amount).by(Fraction.of(exchangeRate))
    if (difference(converted, Fraction.of(amountBaseCurrency)).minus(HALF_A_CENT).sign > 0)
      found.push(`${say(row)}: ${amount} by ${exchangeRate} is not ${amountBaseCurrency}`)
  }
  return found
}

/** Rows of one event name each other, and are of one day. */
function problemsOfRelations(portfolio: Row[]): string[] {
  const byId = new Map(portfolio.map((row) => [row.transactionId, row]))
  return portfolio.flatMap((row) => {
    const related = byId.get(row.relatedTransaction ?? '')
    if (row.relatedTransaction && related === undefined) return [`${say(row)} names no row`]
    if (related && dayOf(related) !== dayOf(row)) return [`${say(row)} names one of another day`]
    if (row.type === 'SPINOFF' && related === undefined) return [`${say(row)} is alone`]
    const incoming = PAIRS[row.type]
    if (incoming === undefined && !INCOMING.has(row.type)) return []
    if (related === undefined || related.relatedTransaction !== row.transactionId)
      return [`${say(row)} has no partner`]
    if (incoming === undefined) return []
    const isSplit = row.type === 'SPLIT_SELL'
    const isWrong =
      related.type !== incoming ||
      related.portfolioId !== row.portfolioId ||
      (related.investment === row.investment) !== isSplit ||
      (row.type === 'ISIN_CHANGE_SELL' && related.titles !== row.titles)
    return isWrong ? [`${say(row)} does not fit ${say(related)}`] : []
  })
}

/** Rows of one holding on one day have different hours, or belong together. */
function problemsOfOrder(portfolio: Row[]): string[] {
  const groups = Map.groupBy(portfolio, (row) => `${dayOf(row)} ${holdingOf(row)}`)
  return [...groups.values()].flatMap((rows) => {
    const [first, second] = rows
    if (first === undefined || second === undefined) return []
    const hours = new Set(rows.map((row) => row.operationDateHour))
    const isPair = rows.length === 2 && first.relatedTransaction === second.transactionId
    if (isPair) return []
    return hours.size < rows.length || hours.has(null) ? [`${say(first)} has no order`] : []
  })
}

/** The calculator takes the outgoing row of a pair first: otherwise a split removes the shares that it has just added. */
function problemsOfPairs(portfolio: Row[]): string[] {
  const rows = chronological(portfolio)
  const places = new Map(rows.map((row, place) => [row.transactionId, place]))
  return rows.flatMap((row, place) => {
    if (PAIRS[row.type] === undefined) return []
    const isFirst = place < Number(places.get(String(row.relatedTransaction)))
    return isFirst ? [] : [`${say(row)} comes after its partner`]
  })
}

/** The account has the cash of each dividend without its tax, and of no other. */
function problemsOfPayments(portfolio: Row[], account: Row[]): string[] {
  const open = account.filter(({ type }) => PAYMENTS.includes(type) || type === 'UNKNOWN')
  const problems = portfolio
    .filter(({ type }) => PAYMENTS.includes(type))
    .flatMap((row) => {
      const net = Fraction.of(row.amount).minus(Fraction.of(row.taxes))
      const index = open.findIndex(
        (cash) =>
          dayOf(cash) === dayOf(row) &&
          cash.currency === row.currency &&
          (cash.type === 'UNKNOWN' ||
            (cash.type === row.type && cash.investment === row.investment)) &&
          Fraction.of(cash.amount).equals(net),
      )
      if (index < 0) return [`${say(row)} is not in the account with ${net.decimal}`]
      open.splice(index, 1)
      return []
    })
  const unpaid = open.filter(({ type }) => type !== 'UNKNOWN')
  return [...problems, ...unpaid.map((row) => `${row.type} of ${dayOf(row)} has no dividend`)]
}

/** No balance is negative, a fee is of a trade of its day, and a refund follows its charge. */
function problemsOfCash(portfolio: Row[], account: Row[]): string[] {
  const problems: string[] = []
  const sums = new Map<string, Fraction>()
  const add = (key: string, amount: Fraction) => {
    const sum = (sums.get(key) ?? Fraction.of('0')).plus(amount)
    sums.set(key, sum)
    return sum.sign
  }
  const commissions = Map.groupBy(portfolio, dayOf)
  for (const row of chronological(account)) {
    const amount = Fraction.of(row.amount)
    const name = `${row.type} of ${dayOf(row)}`
    if (add(String(row.currency), amount) < 0) problems.push(`${name}: the balance is negative`)
    const charge = REFUNDS[row.type] ?? row.type
    const balance = add(`charge ${charge}`, amount)
    if (charge !== row.type && balance > 0) problems.push(`${name}: nothing to give back`)
    const isOfTrade = (trade: Row) =>
      effectOf(trade) !== '=' && Fraction.of(trade.commission).plus(amount).sign === 0
    if (row.type === 'FEES' && !commissions.get(dayOf(row))?.some(isOfTrade))
      problems.push(`${name} is of no trade`)
  }
  return problems
}
