import { add, type Exact, exactOf, negate, textOf, ZERO } from './decimals.ts'
import { dayOf } from './options.ts'
import { type PositionEffect, positionEffect } from './position-effect.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './rows.ts'
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
}

/** Position of an investment in a portfolio: see positions(). */
export interface Position {
  portfolioId: string
  /** Null for the rows that name no investment. */
  investment: string | null
  /** Shares; null if the rows do not tell them. */
  shares: Decimal | null
  /** Name and ISIN, if transfer orders of the copy have the investment and agree; otherwise null. */
  name: string | null
  isin: string | null
  /** Whether the history until that day is complete. */
  status: PositionStatus
  /** See `PositionCheck.reason`. */
  reason?: PositionReason
}

type PortfolioRows = Iterable<PortfolioTransaction>
type AsyncPortfolioRows = AsyncIterable<PortfolioTransaction>

/** Types that add shares without the loss of others, also if they name a row that removes shares. */
const GRANTS = ['RIGHTS_ISSUE', 'SPINOFF']

/** Types of payments for the shares of an earlier day, the record date. */
const PAYMENTS = ['DIVIDENDS', 'COUPON']

/** Longest time from the record date to the payment that a check allows for. */
const RECORD_DATE_DAYS = 8 * 7
const DAY_MS = 86_400_000

/** Returns the effective day of a transaction: its operation date, or else its value date. */
export function effectiveDay(
  row: Pick<PortfolioTransaction, 'operationDateDay' | 'valueDateDay'>,
): string {
  return row.operationDateDay ?? row.valueDateDay ?? ''
}

/**
 * Returns transactions with the oldest first. Rows of a day have the order of their hours. Without hours:
 * of two related rows, the outgoing one is first; other incoming rows come before outgoing ones.
 */
export function chronological<Row extends PortfolioTransaction | AccountTransaction>(
  rows: Iterable<Row>,
): Row[] {
  const all = [...rows].map((row) => ({ row, effect: positionEffect(row.type), isPaired: false }))
  const byId = new Map(all.map((each) => [idOf(each.row), each]))
  for (const each of all) {
    const related = 'relatedTransaction' in each.row ? each.row.relatedTransaction : null
    const other = byId.get(related ?? '')
    const effects = `${each.effect}${other?.effect}`
    if (other !== undefined && (effects === '+-' || effects === '-+'))
      each.isPaired = other.isPaired = true
  }
  return all
    .map(({ row, effect, isPaired }) => ({ row, key: orderOf(row, rankOf(row, effect, isPaired)) }))
    .sort((a, b) => compare(a.key, b.key))
    .map(({ row }) => row)
}

function rankOf(row: { type: string }, effect: PositionEffect | undefined, isPaired: boolean) {
  if (effect === '+') return isPaired && !GRANTS.includes(row.type) ? 2 : 0
  return effect === '-' ? (isPaired ? 1 : 4) : 3
}

/** Day, hour, rank and identifier. A sale without an hour is the last row of its day, others are the first. */
function orderOf(row: PortfolioTransaction | AccountTransaction, rank: number): string[] {
  const hour = row.operationDateHour
  const part = hour !== null ? '1' : rank === 4 ? '2' : '0'
  return [effectiveDay(row), part, hour ?? '', String(rank), idOf(row)]
}

function compare(a: string[], b: string[]): number {
  const index = a.findIndex((text, index) => text !== b[index])
  return index < 0 ? 0 : String(a[index]) < String(b[index]) ? -1 : 1
}

const idOf = (row: PortfolioTransaction | AccountTransaction) =>
  'transactionId' in row ? row.transactionId : row.movementId

/**
 * Checks whether the history is complete: compares the position that a row with the effect `=` states with
 * the shares that the rows before it add up to. Rows of a day without hours have no order, so any
 * position of the day may be the stated one. DIVIDENDS and COUPON may also state a position of the eight
 * weeks before, because they pay for the shares of the record date. It never guesses: see `notVerifiable`.
 */
export function checkPositions(store: {
  portfolioTransactions(): AsyncPortfolioRows
}): Promise<PositionCheck[]>
export function checkPositions(store: { portfolioTransactions(): PortfolioRows }): PositionCheck[]
export function checkPositions(store: {
  portfolioTransactions(): PortfolioRows | AsyncPortfolioRows
}): PositionCheck[] | Promise<PositionCheck[]> {
  const rows = store.portfolioTransactions()
  if (isAsync(rows)) return collect(rows).then(checkRows)
  return checkRows(rows)
}

interface PositionsOptions {
  /** Last day that counts, as YYYY-MM-DD. Default: all rows. */
  at?: string | undefined
}

/**
 * Returns the shares of each investment in each portfolio at the end of a day, also where none are left.
 * Null shares are not zero: the rows do not tell them.
 */
export function positions(
  store: {
    portfolioTransactions(): AsyncPortfolioRows
    transferOrders(): AsyncIterable<AssetsTransferOrder>
  },
  options?: PositionsOptions,
): Promise<Position[]>
export function positions(
  store: {
    portfolioTransactions(): PortfolioRows
    transferOrders(): Iterable<AssetsTransferOrder>
  },
  options?: PositionsOptions,
): Position[]
export function positions(
  store: {
    portfolioTransactions(): PortfolioRows | AsyncPortfolioRows
    transferOrders(): Iterable<AssetsTransferOrder> | AsyncIterable<AssetsTransferOrder>
  },
  { at }: PositionsOptions = {},
): Position[] | Promise<Position[]> {
  const day = dayOf('at', at)
  const rows = store.portfolioTransactions()
  const orders = store.transferOrders()
  if (!isAsync(rows) && !isAsync(orders)) return positionsOf(rows, orders, day)
  // One after the other, because both may be queries of one client.
  return collect(rows).then(async (rows) => positionsOf(rows, await collect(orders), day))
}

function isAsync<Row>(rows: Iterable<Row> | AsyncIterable<Row>): rows is AsyncIterable<Row> {
  return Symbol.asyncIterator in rows
}

async function collect<Row>(rows: Iterable<Row> | AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = []
  for await (const row of rows) all.push(row)
  return all
}

function positionsOf(
  rows: PortfolioRows,
  orders: Iterable<AssetsTransferOrder>,
  day: string | undefined,
): Position[] {
  const all = [...rows]
  const until = day === undefined ? all : all.filter((row) => effectiveDay(row) <= day)
  const allOrders = [...orders]
  return checkRows(until).map(({ portfolioId, investment, position: shares, status, reason }) => {
    const own = allOrders.filter((order) => order.investment === investment)
    const name = onlyOne(own.map((order) => order.name))
    const isin = onlyOne(own.map((order) => order.isin))
    const position = { portfolioId, investment, shares, name, isin, status }
    return reason === undefined ? position : { ...position, reason }
  })
}

/** Returns the value that all known texts have; null if there is none, or if they differ. */
function onlyOne(texts: (string | null)[]): string | null {
  const [first = null, ...others] = new Set(texts.filter((text) => text !== null))
  return others.length === 0 ? first : null
}

function checkRows(rows: PortfolioRows): PositionCheck[] {
  const ordered = chronological(rows)
  const mixed = typesWithBothSigns(ordered)
  const groups = groupBy(ordered, (row) => `${row.portfolioId} ${row.investment ?? ''}`)
  return [...groups.keys()].sort().map((key) => checkPosition(groups.get(key) as Group, mixed))
}

function typesWithBothSigns(rows: PortfolioTransaction[]): Set<string> {
  const negative = new Set<string>()
  const positive = new Set<string>()
  for (const { type, titles } of rows) {
    const { units } = titles === null ? ZERO : exactOf(titles)
    if (units < 0n) negative.add(type)
    if (units > 0n) positive.add(type)
  }
  return new Set([...negative].filter((type) => positive.has(type)))
}

/** Rows with one value in common: at least one. */
type Group = [PortfolioTransaction, ...PortfolioTransaction[]]

/** Map.groupBy() needs Node.js 21. */
function groupBy(
  rows: PortfolioTransaction[],
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

function checkPosition(rows: Group, mixed: Set<string>): PositionCheck {
  const { portfolioId, investment } = rows[0]
  const walk = new Walk(effectiveDay(rows[0]), mixed)
  for (const [day, group] of groupBy(rows, effectiveDay)) walk.day(day, group)
  const { position, verifiedRows, verifiedFrom, firstGap } = walk
  const facts = { portfolioId, investment, position, verifiedRows, verifiedFrom }
  if (firstGap !== undefined) {
    const gap = { ...facts, status: 'gap', firstGap } as const
    return walk.reason === undefined ? gap : { ...gap, reason: walk.reason }
  }
  const reason = walk.reason ?? (verifiedRows === 0 ? 'noStatement' : undefined)
  if (reason !== undefined) return { ...facts, status: 'notVerifiable', reason }
  return { ...facts, status: 'complete' }
}

/**
 * Walks the days of an investment, and compares the stated positions. A position is a start plus the sum of
 * the changes since then. After a payment that contradicts the rows, more than one start is possible,
 * because its record date is not known. A later statement chooses.
 */
class Walk {
  verifiedRows = 0
  firstGap: Gap | undefined
  /** Why the history is not verifiable, from the first such row. */
  reason: PositionReason | undefined
  readonly #mixed: Set<string>
  /** Possible starts; none if the position is not known. */
  #starts: Starts = new Map([[keyOf(ZERO), ZERO]])
  #sum = ZERO
  /** Sums at the ends of the days before, as far as they are known. */
  #ends: { day: string; sum: Exact }[] = []
  /** Last day with a row that does not tell how it changes the position. */
  #unknownDay = ''
  /** True if the position was negative, and no row has stated it since. */
  #isShort = false
  /** Day from which the position is known, and the stated positions since then that are right. */
  #from: string
  #rightRows = 0

  constructor(firstDay: string, mixed: Set<string>) {
    this.#from = firstDay
    this.#mixed = mixed
  }

  get verifiedFrom(): string | null {
    return this.#rightRows > 0 ? this.#from : null
  }

  get position(): Decimal | null {
    const [start, ...others] = this.#starts.values()
    if (start === undefined || others.length > 0 || this.#isShort) return null
    return textOf(add(start, this.#sum))
  }

  day(day: string, rows: Group): void {
    // Rows of one hour have no order. If a row has no hour, the rows of its day have none.
    const isOrdered = rows.every((row) => row.operationDateHour !== null)
    const moments = isOrdered
      ? groupBy(rows, (row) => row.operationDateHour ?? '').values()
      : [rows]
    for (const moment of moments) this.#moment(day, moment)
    this.#ends.push({ day, sum: this.#sum })
    const shares = [...this.#starts.values()].map((start) => add(start, this.#sum))
    if (shares.length > 0 && shares.every(({ units }) => units < 0n)) {
      this.reason ??= 'shortPosition'
      this.#isShort = true
    }
  }

  /** Adds the changes of rows without an order, and compares the positions that they state. */
  #moment(day: string, rows: Group): void {
    // A row may state any position of the moment.
    const sums = [this.#sum]
    const statements: Statement[] = []
    let doubt: PositionReason | undefined
    for (const row of rows) {
      const change = changeOf(row, this.#mixed)
      if (typeof change === 'string') {
        doubt ??= change
        continue
      }
      this.#sum = add(this.#sum, change)
      sums.push(this.#sum)
      if (positionEffect(row.type) === '=' && row.titles !== null)
        statements.push({ type: row.type, shares: exactOf(row.titles), sum: this.#sum })
    }
    if (doubt === undefined) this.#compare(day, statements, sums)
    else this.#lose(day, doubt)
  }

  /** Forgets the position after a row that does not tell how it changes it. */
  #lose(day: string, reason: PositionReason): void {
    this.reason ??= reason
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
      this.#lose(day, 'differentStatements')
      return
    }
    this.#isShort = false
    const right = intersection(this.#starts, starts)
    if (right.size > 0) {
      this.#starts = right
      this.verifiedRows += known.length
      this.#rightRows += known.length
      return
    }
    this.firstGap ??= this.#gapOf(day, known, sums)
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
      const key = keyOf(start)
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
function keyOf(value: Exact): string {
  const text = textOf(value)
  return value.scale === 0 ? text : text.replace(/\.?0+$/, '')
}

function intersection(a: Starts, b: Starts): Starts {
  return new Map([...a].filter(([key]) => b.has(key)))
}

/** Returns the change of the position by a row, or the reason why the row does not tell it. */
function changeOf(row: PortfolioTransaction, mixed: Set<string>): Exact | PositionReason {
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
