import { type PositionEffect, positionEffect } from './position-effect.ts'
import type { AccountTransaction, PortfolioTransaction } from './rows.ts'
import type { Decimal } from './texts.ts'

/** The first row that contradicts the rows before it: `expected` - `found` shares are missing before `day`. */
export interface Gap {
  day: string
  /** Shares that the row states; 0 if more shares left than had arrived. */
  expected: Decimal
  /** Shares that the rows before it add up to. */
  found: Decimal
}

/** Result of checkPositions() for an investment in a portfolio. */
export interface PositionCheck {
  portfolioId: string
  /** Null for the rows that name no investment. */
  investment: string | null
  /**
   * `complete`: each stated position is right. `gap`: one is not. `notVerifiable`: no row states a
   * position, or a row that changes it has no shares.
   */
  status: 'complete' | 'gap' | 'notVerifiable'
  /** Rows whose stated position is right. */
  verifiedRows: number
  /** First day from which all stated positions are right; null if there is none. */
  verifiedFrom: string | null
  firstGap?: Gap
}

/** Types that add shares without the loss of others, also if they name a row that removes shares. */
const GRANTS = ['RIGHTS_ISSUE', 'SPINOFF']

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
  return [dayOfRow(row), part, hour ?? '', String(rank), idOf(row)]
}

function compare(a: string[], b: string[]): number {
  const index = a.findIndex((text, index) => text !== b[index])
  return index < 0 ? 0 : String(a[index]) < String(b[index]) ? -1 : 1
}

const idOf = (row: PortfolioTransaction | AccountTransaction) =>
  'transactionId' in row ? row.transactionId : row.movementId
const dayOfRow = (row: PortfolioTransaction | AccountTransaction) =>
  row.operationDateDay ?? row.valueDateDay ?? ''

/**
 * Checks whether the history is complete: compares the position that a row with the effect `=` states with
 * the shares that the rows before it add up to. Rows of a day without hours have no order, so any
 * position of the day may be the stated one. It never guesses: see `notVerifiable`.
 */
export function checkPositions(store: {
  portfolioTransactions(): Iterable<PortfolioTransaction>
}): PositionCheck[] {
  const rows = chronological(store.portfolioTransactions())
  const groups = groupBy(rows, (row) => `${row.portfolioId} ${row.investment ?? ''}`)
  return [...groups.keys()].sort().map((key) => checkPosition(groups.get(key) as Group))
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

function checkPosition(rows: Group): PositionCheck {
  const { portfolioId, investment } = rows[0]
  const walk = new Walk(dayOfRow(rows[0]))
  for (const [day, group] of groupBy(rows, dayOfRow)) walk.day(day, group)
  const { verifiedRows, verifiedFrom, firstGap, isUnknown } = walk
  const isComplete = verifiedRows > 0 && !isUnknown
  const status = firstGap ? 'gap' : isComplete ? 'complete' : 'notVerifiable'
  const check = { portfolioId, investment, status, verifiedRows, verifiedFrom } as const
  return firstGap ? { ...check, firstGap } : check
}

/** Walks the days of an investment, and compares the stated positions. */
class Walk {
  verifiedRows = 0
  firstGap: Gap | undefined
  /** True if a row without shares, or of an unknown effect, has changed the position. */
  isUnknown = false
  /** Undefined after such a row, until a row states the position. */
  #position: Shares | undefined = ZERO
  /** Day from which the position is known, and the stated positions since then that are right. */
  #from: string
  #rightRows = 0

  constructor(firstDay: string) {
    this.#from = firstDay
  }

  get verifiedFrom(): string | null {
    return this.#rightRows > 0 ? this.#from : null
  }

  day(day: string, rows: PortfolioTransaction[]): void {
    const isOrdered = rows.every((row) => row.operationDateHour !== null)
    let possible = isOrdered ? [] : positionsOf(this.#position, rows)
    for (const row of rows) {
      const { titles } = row
      if (positionEffect(row.type) !== '=' || row.investment === null) {
        this.#position = after(this.#position, row)
        if (this.#position === undefined) this.isUnknown = true
        else if (!isOrdered) possible.push(this.#position)
      } else if (titles !== null) {
        const stated = sharesOf(titles)
        const known = this.#position === undefined ? [] : [this.#position, ...possible]
        if (known.some((position) => subtract(position, stated).units === 0n)) {
          this.verifiedRows += 1
          this.#rightRows += 1
        } else {
          if (this.#position !== undefined) this.#gap(day, stated, this.#position)
          this.#restart(day, stated)
          possible = []
        }
      }
    }
    if (this.#position === undefined || this.#position.units >= 0n) return
    this.#gap(day, ZERO, this.#position)
    this.#restart(day, undefined)
  }

  #gap(day: string, expected: Shares, found: Shares): void {
    this.firstGap ??= { day, expected: textOf(expected), found: textOf(found) }
  }

  #restart(day: string, position: Shares | undefined): void {
    this.#position = position
    this.#from = day
    this.#rightRows = 0
  }
}

/** All positions of a day without an order. */
function positionsOf(start: Shares | undefined, rows: PortfolioTransaction[]): Shares[] {
  let position = start
  const positions = rows.map((row) => {
    position = after(position, row)
    return position
  })
  return [start, ...positions].filter((each) => each !== undefined)
}

/** Returns the position after a row; undefined if the row does not tell it. */
function after(position: Shares | undefined, row: PortfolioTransaction): Shares | undefined {
  const effect = row.investment === null ? undefined : positionEffect(row.type)
  if (effect === '=') return position
  if (position === undefined || effect === undefined || row.titles === null) return undefined
  const { units, scale } = sharesOf(row.titles)
  // The sign is the institution's; the type has the direction.
  const size = units < 0n ? -units : units
  return subtract(position, { units: effect === '-' ? size : -size, scale })
}

/** Exact decimal: `units` * 10 ** -`scale`. */
interface Shares {
  units: bigint
  scale: number
}

const ZERO: Shares = { units: 0n, scale: 0 }

function sharesOf(text: string): Shares {
  const [whole = '0', fraction = ''] = text.split('.')
  return { units: BigInt(whole + fraction), scale: fraction.length }
}

function subtract(a: Shares, b: Shares): Shares {
  const scale = Math.max(a.scale, b.scale)
  const units = ({ units, scale: own }: Shares) => units * 10n ** BigInt(scale - own)
  return { units: units(a) - units(b), scale }
}

function textOf({ units, scale }: Shares): Decimal {
  const sign = units < 0n ? '-' : ''
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0')
  const point = digits.length - scale
  const fraction = scale === 0 ? '' : `.${digits.slice(point)}`
  return `${sign}${digits.slice(0, point)}${fraction}` as Decimal
}
