import { type InvestmentNames, namingOf } from './names.ts'
import { calendarDay } from './options.ts'
import {
  historyOf,
  type PositionCheck,
  type PositionReason,
  type PositionStatus,
  Walks,
} from './position-walk.ts'
import type { AssetsTransferOrder, PortfolioTransaction } from './rows.ts'
import type { Decimal } from './texts.ts'

/** Position of an investment in a portfolio: see positions(). */
export interface Position {
  portfolioId: string
  /** Null for the rows that name no investment. */
  investment: string | null
  /** Shares; null if the rows do not tell them. */
  shares: Decimal | null
  /** Name that the app gives. Otherwise, name of the transfer orders of the copy, if they agree; or else null. */
  name: string | null
  /** ISIN of the transfer orders of the copy, if they agree; otherwise null. */
  isin: string | null
  /** Whether the history until that day is complete. */
  status: PositionStatus
  /** See `PositionCheck.reason`. */
  reason?: PositionReason
  /** See `PositionCheck.reasons`. */
  reasons?: PositionReason[]
}

/** Positions at the end of a day: see positionsByDay(). */
export interface PositionsOfDay {
  /** YYYY-MM-DD. */
  day: string
  positions: Position[]
}

type PortfolioRows = Iterable<PortfolioTransaction>
type AsyncPortfolioRows = AsyncIterable<PortfolioTransaction>

const DAY_MS = 86_400_000

/** A store, or other rows. */
interface Rows {
  portfolioTransactions(): PortfolioRows
  transferOrders(): Iterable<AssetsTransferOrder>
}

/** The same, from a database that answers later. */
interface AsyncRows {
  portfolioTransactions(): AsyncPortfolioRows
  transferOrders(): AsyncIterable<AssetsTransferOrder>
}

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

function checkRows(rows: PortfolioRows): PositionCheck[] {
  const walks = new Walks(historyOf(rows))
  walks.until(undefined)
  return walks.checks()
}

export interface PositionsOptions {
  /** Last day that counts, as YYYY-MM-DD. Default: all rows. */
  at?: string | undefined
  /** Names of investments that your app knows, by identifier. They come before those of transfer orders. */
  names?: InvestmentNames | undefined
}

export interface PositionsByDayOptions {
  /** First day, as YYYY-MM-DD. */
  from: string
  /** Last day, as YYYY-MM-DD. */
  to: string
  /** See `PositionsOptions.names`. */
  names?: InvestmentNames | undefined
}

/**
 * Returns the shares of each investment in each portfolio at the end of a day, also where none are left.
 * Null shares are not zero: the rows do not tell them.
 */
export function positions(store: AsyncRows, options?: PositionsOptions): Promise<Position[]>
export function positions(store: Rows, options?: PositionsOptions): Position[]
export function positions(
  store: Rows | AsyncRows,
  { at, names }: PositionsOptions = {},
): Position[] | Promise<Position[]> {
  const day = at === undefined ? undefined : calendarDay('at', at)
  return withRows(store, (rows, orders) => {
    const walks = new Walks(historyOf(rows))
    walks.until(day)
    return walks.checks().map(namedBy(orders, names))
  })
}

/**
 * Returns positions() at the end of each day from `from` to `to`. It reads the store once, and walks its rows
 * once; or once more for each type whose outgoing rows have both signs from one of these days on.
 */
export function positionsByDay(
  store: AsyncRows,
  options: PositionsByDayOptions,
): Promise<PositionsOfDay[]>
export function positionsByDay(store: Rows, options: PositionsByDayOptions): PositionsOfDay[]
export function positionsByDay(
  store: Rows | AsyncRows,
  { from, to, names }: PositionsByDayOptions,
): PositionsOfDay[] | Promise<PositionsOfDay[]> {
  const days = daysBetween(calendarDay('from', from), calendarDay('to', to))
  return withRows(store, (rows, orders) => {
    const walks = new Walks(historyOf(rows))
    const named = namedBy(orders, names)
    return days.map((day) => {
      walks.until(day)
      return { day, positions: walks.checks().map(named) }
    })
  })
}

/**
 * Returns each day from the first to the last one.
 * @throws TypeError if there is none
 */
function daysBetween(first: string, last: string): string[] {
  if (first > last) throw new TypeError('from must not be after to')
  const days: string[] = []
  for (let time = Date.parse(first); time <= Date.parse(last); time += DAY_MS)
    days.push(new Date(time).toISOString().slice(0, 10))
  return days
}

/** Reads the rows of a store, and passes them on. */
function withRows<Result>(
  store: Rows | AsyncRows,
  work: (rows: PortfolioRows, orders: Iterable<AssetsTransferOrder>) => Result,
): Result | Promise<Result> {
  const rows = store.portfolioTransactions()
  const orders = store.transferOrders()
  if (!isAsync(rows) && !isAsync(orders)) return work(rows, orders)
  // One after the other, because both may be queries of one client.
  return collect(rows).then(async (rows) => work(rows, await collect(orders)))
}

function isAsync<Row>(rows: Iterable<Row> | AsyncIterable<Row>): rows is AsyncIterable<Row> {
  return Symbol.asyncIterator in rows
}

async function collect<Row>(rows: Iterable<Row> | AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = []
  for await (const row of rows) all.push(row)
  return all
}

function namedBy(orders: Iterable<AssetsTransferOrder>, names: InvestmentNames | undefined) {
  const naming = namingOf(orders, names)
  return (check: PositionCheck): Position => {
    const { portfolioId, investment, position, status, reason, reasons } = check
    const { name, isin } = naming(investment)
    const why = reason === undefined || reasons === undefined ? {} : { reason, reasons }
    return { portfolioId, investment, shares: position, name, isin, status, ...why }
  }
}
