import {
  checkPositions,
  type Position,
  type PositionCheck,
  positions,
} from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { connection, day, flag, identifier, offset, oneOf } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { description, shortText } from '../texts.ts'
import { type Answer, defineTool } from '../tool.ts'

const STATUSES = ['complete', 'gap', 'notVerifiable'] as const
/** Positions of an answer; fewer if they exceed its bytes. */
const MAX_POSITIONS = 200

export function checkPositionsTool(connections: readonly string[]) {
  return defineTool({
    name: 'check_positions',
    description:
      'Shares of each investment, and whether its history is complete. gap: rows are missing before gapDay. notVerifiable: the rows do not tell, see reasons. Empty shares are unknown, not 0.',
    input: {
      connection: connection(connections),
      at: day('end of this day; default: now'),
      status: oneOf(STATUSES, 'those of this status'),
      investment: identifier('identifier, or its beginning'),
      heldOnly: flag('without those of 0 shares'),
      offset,
    },
    work: ({ at, status, investment, heldOnly, offset: from = 0 }, copy, names): Answer => {
      const rows = [...copy.portfolioTransactions({ to: at })]
      const read = {
        portfolioTransactions: () => rows,
        transferOrders: () => copy.transferOrders(),
      }
      // Both functions have one entry for each portfolio and investment, in the same order.
      const all = positions(read, { at, names })
      const checks = checkPositions(read)
      const investments = new Identifiers(all.map((position) => position.investment))
      const portfolios = new Identifiers(all.map(({ portfolioId }) => portfolioId))
      if (investment !== undefined) investments.expectOne('investment', investment)
      const wanted = all
        .map((position, index) => ({ position, check: checks[index] }))
        .filter(({ position }) => status === undefined || position.status === status)
        .filter(({ position }) => position.investment?.startsWith(investment ?? '') !== false)
        .filter(({ position }) => heldOnly !== true || !isZero(position.shares))
      const lines = wanted
        .slice(from, from + MAX_POSITIONS)
        .map(({ position, check }) => lineOf(position, check, investments, portfolios))
      const { facts, table } = partOf(lines, from, wanted.length)
      return { facts: { positionsByStatus: countsOf(all), ...facts }, table }
    },
  })
}

/** Unknown shares may be some. */
const isZero = (shares: string | null) => shares !== null && /^-?[0.]+$/.test(shares)

function countsOf(all: Position[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const status of STATUSES)
    counts[status] = all.filter((each) => each.status === status).length
  return counts
}

function lineOf(
  position: Position,
  check: PositionCheck | undefined,
  investments: Identifiers,
  portfolios: Identifiers,
): Line {
  // Cells that do not apply are undefined, and unknown ones are empty.
  return {
    portfolio: portfolios.short(position.portfolioId),
    investment: investments.short(position.investment),
    name: description(position.name),
    isin: shortText(position.isin),
    shares: position.shares ?? '',
    status: position.status,
    reasons: position.reasons?.join(', '),
    verifiedFrom: check?.verifiedFrom ?? undefined,
    gapDay: check?.firstGap?.day,
    expected: check?.firstGap?.expected,
    found: check?.firstGap?.found,
  }
}
