import { type PositionEffect, positionEffect } from './position-effect.ts'
import type { AccountTransaction, PortfolioTransaction } from './rows.ts'

/** Types that add shares without the loss of others, also if they name a row that removes shares. */
const GRANTS = ['RIGHTS_ISSUE', 'SPINOFF']

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
