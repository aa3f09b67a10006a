// @ts-check
/**
 * Computes positions, gains and dividends from the rows of the API. It knows the specification and the rules of
 * docs/sandbox.md, and nothing of the service or of the sample data. The page /docs and the tests of the sample data use it.
 */

/**
 * A row of either transaction list, with decimals as text.
 * @typedef {{
 *   transactionId?: string
 *   portfolioId: string
 *   type: string
 *   titles: string | null
 *   price: string | null
 *   amount: string | null
 *   commission: string | null
 *   taxes: string | null
 *   currency: string | null
 *   exchangeRate: string | null
 *   amountBaseCurrency: string | null
 *   operationDateDay: string | null
 *   operationDateHour: string | null
 *   valueDateDay: string | null
 *   investment: string | null
 *   relatedTransaction: string | null
 * }} Row
 */

/**
 * Shares of an investment in a portfolio, after the last row of each day that changes them.
 * @typedef {{ portfolioId: string; investment: string; titles: Record<string, string> }} Holding
 */

/**
 * Position that a row states, and the position that the rows before it make.
 * @typedef {{ row: Row; stated: Fraction; computed: Fraction }} Statement
 */

/**
 * Figures of a year in euros.
 * @typedef {{ realisedGain: string; dividendsGross: string; dividendsNet: string; withheldTax: string }} Figures
 */

/**
 * Shares of a purchase. A transfer, a split and a change of the security keep its day.
 * @typedef {{ day: string; shares: Fraction; cost: Fraction }} Lot
 */

/** Exact fraction. */
export class Fraction {
  /** @param {bigint} over */
  constructor(over, under = 1n) {
    let [divisor, rest] = [under, over]
    while (rest !== 0n) [divisor, rest] = [rest, divisor % rest]
    if (divisor < 0n !== under < 0n) divisor = -divisor
    this.over = over / divisor
    this.under = under / divisor
  }

  /** @param {string | null} text */
  static of(text) {
    const [, sign, whole, digits = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text ?? '0') ?? []
    if (whole === undefined) throw new Error(`${text} is not a decimal`)
    return new Fraction(BigInt(`${sign}${whole}${digits}`), 10n ** BigInt(digits.length))
  }

  /** @param {Fraction} other @returns {Fraction} */
  plus(other) {
    return new Fraction(this.over * other.under + other.over * this.under, this.under * other.under)
  }

  /** @param {Fraction} other @returns {Fraction} */
  minus(other) {
    return this.plus(new Fraction(-other.over, other.under))
  }

  /** @param {Fraction} other @returns {Fraction} */
  times(other) {
    return new Fraction(this.over * other.over, this.under * other.under)
  }

  /** @param {Fraction} other @returns {Fraction} */
  by(other) {
    return new Fraction(this.over * other.under, this.under * other.over)
  }

  /** -1, 0 or 1. */
  get sign() {
    return this.over < 0n ? -1 : this.over > 0n ? 1 : 0
  }

  /** @param {Fraction} other */
  equals(other) {
    return this.minus(other).sign === 0
  }

  /** Decimal with two decimals; half a cent is rounded away from zero. */
  get cents() {
    const size = this.over < 0n ? -this.over : this.over
    const rounded = String((size * 200n + this.under) / (2n * this.under)).padStart(3, '0')
    const sign = this.over < 0n && !/^0+$/.test(rounded) ? '-' : ''
    return `${sign}${rounded.slice(0, -2)}.${rounded.slice(-2)}`
  }

  /** All decimals, without trailing zeros. The fraction must have a finite number of them. */
  get decimal() {
    let scale = 0
    let { over, under } = this
    while (over % under !== 0n) {
      if (scale === 80) throw new Error(`${this.over}/${this.under} has no end`)
      over *= 10n
      scale += 1
    }
    const size = over / under
    const digits = String(size < 0n ? -size : size).padStart(scale + 1, '0')
    const end = digits.length - scale
    return `${size < 0n ? '-' : ''}${digits.slice(0, end)}${scale > 0 ? '.' : ''}${digits.slice(end)}`
  }
}

const ZERO = new Fraction(0n)

/**
 * Section 2.4 of the specification, without EXPIRATION, which has no effect there.
 * @type {Record<string, '+' | '-' | '='>}
 */
const EFFECTS = {
  BUY: '+',
  COMPENSATION: '=',
  COUPON: '=',
  DELISTING: '-',
  DIVIDENDS: '=',
  INHERITANCE_OR_DONATION_TRANSFER_IN: '+',
  INHERITANCE_OR_DONATION_TRANSFER_OUT: '-',
  ISIN_CHANGE_BUY: '+',
  ISIN_CHANGE_SELL: '-',
  MERGER_BUY: '+',
  MERGER_SELL: '-',
  OFF_MARKET_BUY: '+',
  OFF_MARKET_SELL: '-',
  PRODUCT_CHANGE_BUY: '+',
  PRODUCT_CHANGE_SELL: '-',
  RIGHTS_CONVERSION_BUY: '+',
  RIGHTS_CONVERSION_SELL: '-',
  RIGHTS_EXCLUSION: '-',
  RIGHTS_ISSUE: '+',
  SELL: '-',
  SHARE_ISSUE_PREMIUM: '=',
  SPINOFF: '+',
  SPLIT_BUY: '+',
  SPLIT_SELL: '-',
  TRANSFER_IN: '+',
  TRANSFER_OUT: '-',
  UNKNOWN: '=',
}

/** @param {Row} row */
export const effectOf = (row) => EFFECTS[row.type]
/** @param {Row} row */
export const dayOf = (row) => row.operationDateDay ?? String(row.valueDateDay)
/** @param {Row} row */
export const holdingOf = (row) => `${row.portfolioId} ${row.investment}`

/**
 * Oldest first. Rows without an hour come first on their day, and the outgoing one of related rows.
 * @param {Row[]} rows
 */
export function chronological(rows) {
  /** @param {Row} row */
  const rank = (row) => (row.relatedTransaction && effectOf(row) === '-' ? 0 : 1)
  /** @param {Row} row */
  const key = (row) => `${dayOf(row)} ${row.operationDateHour ?? ''} ${rank(row)}`
  return [...rows].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0))
}

/**
 * Walks the rows, and returns the positions, what the rows state of them, and rows that no position allows.
 * @param {Row[]} rows
 */
export function walk(rows) {
  /** @type {Map<string, Fraction>} */
  const positions = new Map()
  /** @type {Map<string, Holding>} */
  const holdings = new Map()
  /** @type {Statement[]} */
  const statements = []
  /** @type {Row[]} */
  const negative = []
  for (const row of chronological(rows)) {
    const { portfolioId, investment } = row
    const key = holdingOf(row)
    const titles = Fraction.of(row.titles)
    const effect = effectOf(row)
    const before = positions.get(key) ?? ZERO
    if (effect === '=' && row.titles !== null)
      statements.push({ row, stated: titles, computed: before })
    if ((effect !== '+' && effect !== '-') || titles.sign === 0) continue
    const after = effect === '+' ? before.plus(titles) : before.minus(titles)
    if (after.sign < 0) negative.push(row)
    positions.set(key, after)
    const holding = holdings.get(key) ?? { portfolioId, investment: String(investment), titles: {} }
    holding.titles[dayOf(row)] = after.decimal
    holdings.set(key, holding)
  }
  return { holdings: [...holdings.values()], statements, negative }
}

/** Lots of each holding, oldest first. */
class Lots {
  /** @type {Map<string, Lot[]>} */
  #lots = new Map()

  /** @param {string} holding @param {Lot[]} lots */
  add(holding, ...lots) {
    const all = [...(this.#lots.get(holding) ?? []), ...lots]
    this.#lots.set(
      holding,
      all.sort((a, b) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0)),
    )
  }

  /** Removes shares from the oldest lots. @param {string} holding @param {Fraction} shares */
  take(holding, shares) {
    /** @type {Lot[]} */
    const kept = []
    /** @type {Lot[]} */
    const taken = []
    let left = shares
    for (const lot of this.#lots.get(holding) ?? []) {
      const rest = lot.shares.minus(left)
      if (left.sign === 0) kept.push(lot)
      else if (rest.sign <= 0) {
        taken.push(lot)
        left = left.minus(lot.shares)
      } else {
        /** @param {Fraction} shares */
        const part = (shares) => ({
          ...lot,
          shares,
          cost: lot.cost.times(shares).by(lot.shares),
        })
        taken.push(part(left))
        kept.push(part(rest))
        left = ZERO
      }
    }
    if (left.sign > 0) throw new Error(`${left.decimal} shares of ${holding} have no purchase`)
    this.#lots.set(holding, kept)
    return taken
  }
}

/**
 * Converts an amount of a row into euros.
 * @param {Pick<Row, 'currency' | 'exchangeRate'>} row
 * @param {Fraction} amount
 */
function euros(row, amount) {
  return row.currency === 'EUR' ? amount : amount.by(Fraction.of(row.exchangeRate))
}

/** @param {Row} row */
function chargesOf(row) {
  return euros(row, Fraction.of(row.commission).plus(Fraction.of(row.taxes)))
}

/** @param {Row} row */
const amountOf = (row) =>
  row.amountBaseCurrency === null
    ? euros(row, Fraction.of(row.amount))
    : Fraction.of(row.amountBaseCurrency)

/** @param {Fraction[]} fractions */
const sum = (fractions) => fractions.reduce((total, one) => total.plus(one), ZERO)

/**
 * Returns the realised gains of each year, by FIFO for each portfolio and investment.
 * @param {Row[]} rows
 */
function gainsOf(rows) {
  /** @type {Map<string, Fraction>} */
  const gains = new Map()
  /** @param {Row} row @param {Fraction} amount */
  const gain = (row, amount) => {
    const year = dayOf(row).slice(0, 4)
    gains.set(year, (gains.get(year) ?? ZERO).plus(amount))
  }
  const byId = new Map(rows.map((row) => [String(row.transactionId), row]))
  const lots = new Lots()
  for (const row of chronological(rows)) {
    const shares = Fraction.of(row.titles)
    const related = byId.get(row.relatedTransaction ?? '')
    const effect = effectOf(row)
    if (effect === '+' && !(related && effectOf(related) === '-')) {
      const cost = amountOf(row).plus(chargesOf(row))
      lots.add(holdingOf(row), { day: dayOf(row), shares, cost })
    }
    if (effect !== '-') continue
    const taken = lots.take(holdingOf(row), shares)
    const cost = sum(taken.map((lot) => lot.cost))
    if (related === undefined || effectOf(related) !== '+') {
      gain(row, amountOf(row).minus(chargesOf(row)).minus(cost))
      continue
    }
    const cashRow = rows.find(
      (other) =>
        other.type === 'COMPENSATION' && other.relatedTransaction === String(row.transactionId),
    )
    let kept = new Fraction(1n)
    if (cashRow) {
      const cash = amountOf(cashRow)
      kept = amountOf(related).by(amountOf(related).plus(cash))
      gain(cashRow, cash.minus(cost.times(new Fraction(1n).minus(kept))))
    }
    const received = Fraction.of(related.titles)
    if (row.type === 'RIGHTS_CONVERSION_SELL') {
      const paid = amountOf(related).plus(chargesOf(related))
      lots.add(holdingOf(related), { day: dayOf(row), shares: received, cost: cost.plus(paid) })
      continue
    }
    const moved = taken.map((lot) => ({
      day: lot.day,
      shares: lot.shares.times(received).by(shares),
      cost: lot.cost.times(kept),
    }))
    lots.add(holdingOf(related), ...moved)
  }
  return gains
}

/**
 * Returns the figures of each year in euros. A year without any is left out.
 * @param {Row[]} portfolio
 * @param {Row[]} account
 * @returns {Record<string, Figures>}
 */
export function yearsOf(portfolio, account) {
  const gains = gainsOf(portfolio)
  const paid = portfolio.filter(({ type }) => type === 'DIVIDENDS')
  const received = account.filter(({ type }) => type === 'DIVIDENDS')
  const years = new Set([...gains.keys(), ...paid.map((row) => dayOf(row).slice(0, 4))])
  return Object.fromEntries(
    [...years].sort().map((year) => {
      /** @param {Row[]} rows */
      const of = (rows) => rows.filter((row) => dayOf(row).startsWith(year))
      const figures = {
        realisedGain: (gains.get(year) ?? ZERO).cents,
        dividendsGross: sum(of(paid).map(amountOf)).cents,
        dividendsNet: sum(of(received).map((row) => euros(row, Fraction.of(row.amount)))).cents,
        withheldTax: sum(of(paid).map((row) => euros(row, Fraction.of(row.taxes)))).cents,
      }
      return [year, figures]
    }),
  )
}
