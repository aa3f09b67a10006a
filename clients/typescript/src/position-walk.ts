import { chronological, effectiveDay } from './chronological.ts'
import { add, type Exact, exactOf, negate, textOf, ZERO } from './decimals.ts'
import { positionEffect } from './position-effect.ts'
import type { PortfolioTransaction } from './rows.ts'
import type { Decimal } from './texts.ts'

/** The first row that contradicts the rows before it: `expected` - `found` shares are missing before `day`. */
export interface Gap {
  day: string
  /** Shares that the row states. */
  expected: Decimal
  /** Shares that the rows before it add up to. */
  found: Decimal
}

/** Whether the rows of an investment explain each other: see `PositionCheck.status`. */
export type PositionStatus = 'complete' | 'gap' | 'notVerifiable'

/**
 * Why a history is not verifiable:
 * - `noStatement`: no row states a position.
 * - `noShares`: a row that changes the position has no `titles`.
 * - `noEffect`: the effect of a row on the position is not defined, as for EXPIRATION.
 * - `noInvestment`: the rows name no investment.
 * - `negativeShares`: an incoming row, or one that states a position, has negative `titles`. It may cancel
 *   another row.
 * - `bothSigns`: outgoing rows of one type have positive `titles`, and others negative ones. One of the signs
 *   may mean a cancellation.
 * - `shortPosition`: more shares left than had arrived. This is a short sale, or rows are missing.
 * - `differentStatements`: rows of one moment state different positions. Their order is not known.
 */
export type PositionReason =
  | 'noStatement'
  | 'noShares'
  | 'noEffect'
  | 'noInvestment'
  | 'negativeShares'
  | 'bothSigns'
  | 'shortPosition'
  | 'differentStatements'

/** Result of checkPositions() for an investment in a portfolio. */
export interface PositionCheck {
  portfolioId: string
  /** Null for the rows that name no investment. */
  investment: string | null
  /**
   * `complete`: each stated position is right. `gap`: one is not, so rows are missing. `notVerifiable`: the
   * rows do not tell.
   */
  status: PositionStatus
  /** Shares after the last row; null if the rows do not tell them. */
  position: Decimal | null
  /** Rows whose stated position is right. */
  verifiedRows: number
  /** First day from which all stated positions are right; null if there is none. */
  verifiedFrom: string | null
  /** Present if the status is `gap`. */
  firstGap?: Gap
  /** Why the rows do not tell all. Present if the status is `notVerifiable`; with a gap there may be one, too. */
  reason?: PositionReason
  /** All reasons, each once, from the first one, which is `reason`. Present if there is one. */
  reasons?: PositionReason[]
}

/** Types of payments for the shares of an earlier day, the record date. */
const PAYMENTS = ['DIVIDENDS', 'COUPON']

/** Longest time from the record date to the payment that a check allows for. */
const RECORD_DATE_DAYS = 8 * 7
const DAY_MS = 86_400_000

/** Rows of a connection. */
interface History {
  /** The oldest day is the first. */
  days: { day: string; rows: PortfolioTransaction[] }[]
  /** Types whose outgoing rows have both signs, with the first day of the second sign. */
  mixedSince: Map<string, string>
}

export function historyOf(rows: Iterable<PortfolioTransaction>): History {
  const byDay = groupBy(rows, effectiveDay)
  // Rows of other days have no effect on the order of a day, so a history until a day is a part of the whole.
  const days = [...byDay].map(([day, rows]) => ({ day, rows: chronological(rows) }))
  days.sort((a, b) => (a.day < b.day ? -1 : 1))
  return { days, mixedSince: mixedSinceOf(days) }
}

function mixedSinceOf(days: History['days']): Map<string, string> {
  const negative = new Set<string>()
  const positive = new Set<string>()
  const mixedSince = new Map<string, string>()
  for (const { day, rows } of days)
    for (const { type, titles } of rows) {
      if (titles === null || positionEffect(type) !== '-') continue
      const { units } = exactOf(titles)
      if (units < 0n) negative.add(type)
      if (units > 0n) positive.add(type)
      if (negative.has(type) && positive.has(type) && !mixedSince.has(type))
        mixedSince.set(type, day)
    }
  return mixedSince
}

/** Walks a history day by day, with a walk for each investment in each portfolio. */
export class Walks {
  readonly #history: History
  readonly #walks = new Map<string, Walk>()
  #mixed = new Set<string>()
  #nextDay = 0

  constructor(history: History) {
    this.#history = history
  }

  /** Walks on until the end of a day; undefined: until the last one. */
  until(last: string | undefined): void {
    const isInTime = (day: string) => last === undefined || day <= last
    const mixed = [...this.#history.mixedSince].filter(([, since]) => isInTime(since))
    if (mixed.length > this.#mixed.size) {
      // Earlier rows of these types have another meaning now.
      this.#mixed = new Set(mixed.map(([type]) => type))
      this.#walks.clear()
      this.#nextDay = 0
    }
    const { days } = this.#history
    for (let next = days[this.#nextDay]; next && isInTime(next.day); next = days[this.#nextDay]) {
      for (const [key, group] of groupBy(next.rows, keyOf))
        this.#walkOf(key, group).day(next.day, group)
      this.#nextDay += 1
    }
  }

  #walkOf(key: string, [row]: Group): Walk {
    const known = this.#walks.get(key)
    if (known !== undefined) return known
    const walk = new Walk(row, this.#mixed)
    this.#walks.set(key, walk)
    return walk
  }

  /** Results by portfolio and investment. */
  checks(): PositionCheck[] {
    return [...this.#walks].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, walk]) => walk.check)
  }
}

const keyOf = ({ portfolioId, investment }: PortfolioTransaction) =>
  `${portfolioId} ${investment ?? ''}`

/** Rows with one value in common: at least one. */
type Group = [PortfolioTransaction, ...PortfolioTransaction[]]

/** Map.groupBy() needs Node.js 21. */
function groupBy(
  rows: Iterable<PortfolioTransaction>,
  keyOf: (row: PortfolioTransaction) => string,
): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group) group.push(row)
    else groups.set(keyOf(row), [row])
  }
  return groups
}

/**
 * Walks the days of an investment, and compares the stated positions. A position is a start plus the sum of
 * the changes since then. After a payment that contradicts the rows, more than one start is possible,
 * because its record date is not known. A later statement chooses.
 */
class Walk {
  readonly #portfolioId: string
  readonly #investment: string | null
  readonly #mixed: ReadonlySet<string>
  /** Possible starts; none if the position is not known. */
  #starts: Starts = new Map([[textOf(ZERO), ZERO]])
  #sum = ZERO
  /** Sums at the ends of the days before, as far as they are known. */
  #ends: { day: string; sum: Exact }[] = []
  /** Last day with a row that does not tell how it changes the position. */
  #unknownDay = ''
  /** True if the position was negative, and no row has stated it since. */
  #isShort = false
  #firstGap: Gap | undefined
  /** Why the history is not verifiable, from the first such row. */
  readonly #reasons = new Set<PositionReason>()
  #verifiedRows = 0
  /** Day from which the position is known, and the stated positions since then that are right. */
  #from: string
  #rightRows = 0
  /** Result until the last day. */
  #check: PositionCheck | undefined

  constructor(firstRow: PortfolioTransaction, mixed: ReadonlySet<string>) {
    this.#portfolioId = firstRow.portfolioId
    this.#investment = firstRow.investment
    this.#from = effectiveDay(firstRow)
    this.#mixed = mixed
  }

  get check(): PositionCheck {
    this.#check ??= this.#checkOf()
    return this.#check
  }

  #checkOf(): PositionCheck {
    const facts = {
      portfolioId: this.#portfolioId,
      investment: this.#investment,
      position: this.#position(),
      verifiedRows: this.#verifiedRows,
      verifiedFrom: this.#rightRows > 0 ? this.#from : null,
    }
    const reasons = [...this.#reasons]
    const firstGap = this.#firstGap
    if (firstGap === undefined && reasons.length === 0 && this.#verifiedRows === 0)
      reasons.push('noStatement')
    const [reason] = reasons
    const why = reason === undefined ? {} : { reason, reasons }
    if (firstGap !== undefined) return { ...facts, status: 'gap', firstGap, ...why }
    return { ...facts, status: reason === undefined ? 'complete' : 'notVerifiable', ...why }
  }

  #position(): Decimal | null {
    const [start, ...others] = this.#starts.values()
    if (start === undefined || others.length > 0 || this.#isShort) return null
    return textOf(add(start, this.#sum))
  }

  day(day: string, rows: Group): void {
    this.#check = undefined
    // Rows of one hour have no order. If a row has no hour, the rows of its day have none.
    const isOrdered = rows.every((row) => row.operationDateHour !== null)
    const moments = isOrdered
      ? groupBy(rows, (row) => row.operationDateHour ?? '').values()
      : [rows]
    for (const moment of moments) this.#moment(day, moment)
    this.#ends.push({ day, sum: this.#sum })
    const shares = [...this.#starts.values()].map((start) => add(start, this.#sum))
    if (shares.length > 0 && shares.every(({ units }) => units < 0n)) {
      this.#reasons.add('shortPosition')
      this.#isShort = true
    }
  }

  /** Adds the changes of rows without an order, and compares the positions that they state. */
  #moment(day: string, rows: Group): void {
    // A row may state any position of the moment.
    const sums = [this.#sum]
    const statements: Statement[] = []
    const doubts: PositionReason[] = []
    for (const row of rows) {
      const change = changeOf(row, this.#mixed)
      if (typeof change === 'string') {
        doubts.push(change)
        continue
      }
      this.#sum = add(this.#sum, change)
      sums.push(this.#sum)
      if (positionEffect(row.type) === '=' && row.titles !== null)
        statements.push({ type: row.type, shares: exactOf(row.titles), sum: this.#sum })
    }
    if (doubts.length === 0) this.#compare(day, statements, sums)
    else this.#lose(day, doubts)
  }

  /** Forgets the position after rows that do not tell how they change it. */
  #lose(day: string, reasons: PositionReason[]): void {
    for (const reason of reasons) this.#reasons.add(reason)
    this.#starts = new Map()
    this.#ends = []
    this.#unknownDay = day
  }

  /** Compares the positions that the rows of a moment state. They must have a start in common. */
  #compare(day: string, statements: Statement[], sums: Exact[]): void {
    const known = statements.filter(({ type }) => !this.#mayPrecedeLoss(type, day))
    const [first, ...others] = known.map((each) => this.#startsOf(each, day, sums))
    if (first === undefined) return
    const starts = others.reduce(intersection, first)
    if (starts.size === 0) {
      this.#lose(day, ['differentStatements'])
      return
    }
    this.#isShort = false
    const right = intersection(this.#starts, starts)
    if (right.size > 0) {
      this.#starts = right
      this.#verifiedRows += known.length
      this.#rightRows += known.length
      return
    }
    this.#firstGap ??= this.#gapOf(day, known, sums)
    this.#starts = starts
    this.#from = day
    this.#rightRows = 0
  }

  /** True for a payment whose record date may be before a row that does not tell how it changes the position. */
  #mayPrecedeLoss(type: string, day: string): boolean {
    return PAYMENTS.includes(type) && recordDatesFrom(day) <= this.#unknownDay
  }

  /** Starts that explain the position that a row states. */
  #startsOf({ type, shares }: Statement, day: string, sums: Exact[]): Starts {
    const since = PAYMENTS.includes(type) ? recordDatesFrom(day) : day
    const starts: Starts = new Map()
    for (const sum of [...sums, ...this.#sumsSince(since, day)]) {
      const start = add(shares, negate(sum))
      const key = shortest(start)
      if (!starts.has(key)) starts.set(key, start)
    }
    return starts
  }

  /** The first statement that no possible start explains; undefined if the position was not known. */
  #gapOf(day: string, statements: Statement[], sums: Exact[]): Gap | undefined {
    const [start] = this.#starts.values()
    const [first] = statements
    if (start === undefined || first === undefined) return undefined
    const isWrong = (each: Statement) =>
      intersection(this.#starts, this.#startsOf(each, day, sums)).size === 0
    const { shares, sum } = statements.find(isWrong) ?? first
    return { day, expected: textOf(shares), found: textOf(add(start, sum)) }
  }

  /** Sums at the ends of the days from `since`, with the one before; not that of `day`. */
  #sumsSince(since: string, day: string): Exact[] {
    if (since === day) return []
    const before = this.#ends.filter((end) => end.day < since).slice(-1)
    const after = this.#ends.filter((end) => end.day >= since)
    return [...before, ...after].map(({ sum }) => sum)
  }
}

/** First day that may be the record date of a payment. */
function recordDatesFrom(day: string): string {
  return new Date(Date.parse(day) - RECORD_DATE_DAYS * DAY_MS).toISOString().slice(0, 10)
}

/** Possible starts of a position by their shortest text. */
type Starts = Map<string, Exact>

/** A row that states a position, with the sum of the changes before it. */
interface Statement {
  type: string
  shares: Exact
  sum: Exact
}

/** Returns the shortest text. */
function shortest(value: Exact): string {
  const text = textOf(value)
  return value.scale === 0 ? text : text.replace(/\.?0+$/, '')
}

function intersection(a: Starts, b: Starts): Starts {
  return new Map([...a].filter(([key]) => b.has(key)))
}

/** Returns the change of the position by a row, or the reason why the row does not tell it. */
function changeOf(row: PortfolioTransaction, mixed: ReadonlySet<string>): Exact | PositionReason {
  if (row.investment === null) return 'noInvestment'
  const effect = positionEffect(row.type)
  if (effect === '=') {
    // Negative shares may cancel a row before it.
    const isNegative = row.titles !== null && exactOf(row.titles).units < 0n
    return isNegative ? 'negativeShares' : ZERO
  }
  if (effect === undefined) return 'noEffect'
  if (row.titles === null) return 'noShares'
  const titles = exactOf(row.titles)
  if (effect === '+') return titles.units < 0n ? 'negativeShares' : titles
  // Many institutions write outgoing shares with a minus. One sign for a type is no doubt.
  if (mixed.has(row.type)) return 'bothSigns'
  return titles.units < 0n ? titles : negate(titles)
}
