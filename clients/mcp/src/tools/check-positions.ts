import { type Static, Type } from '@sinclair/typebox'
import {
  checkPositions,
  type Position,
  type PositionCheck,
  positions,
  type SqliteStore,
} from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { day, offset, oneOf } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { description, shortText } from '../texts.ts'
import type { Answer } from '../tool.ts'

const STATUSES = ['complete', 'gap', 'notVerifiable'] as const
/** Positions of an answer; fewer if they exceed its bytes. */
const MAX_POSITIONS = 200

function inputOf(connections: readonly string[]) {
  const properties = {
    connection: oneOf(connections),
    at: Type.Optional(day('end of this day; default: now')),
    status: Type.Optional(oneOf(STATUSES)),
    offset,
  }
  return Type.Object(properties, { additionalProperties: false })
}

export function checkPositionsTool(connections: readonly string[]) {
  const input = inputOf(connections)
  return {
    name: 'check_positions',
    description:
      'Shares of each investment, and whether its history is complete. gap: rows are missing before gapDay. notVerifiable: the rows do not tell, see reason. Empty shares are unknown, not 0.',
    input,
    work: ({ at, status, offset: from = 0 }: Static<typeof input>, copy: SqliteStore): Answer => {
      const rows = [...copy.portfolioTransactions({ to: at })]
      const read = {
        portfolioTransactions: () => rows,
        transferOrders: () => copy.transferOrders(),
      }
      // Both functions have one entry for each portfolio and investment, in the same order.
      const all = positions(read, { at })
      const checks = checkPositions(read)
      const investments = new Identifiers(all.map(({ investment }) => investment))
      const portfolios = new Identifiers(all.map(({ portfolioId }) => portfolioId))
      const wanted = all
        .map((position, index) => ({ position, check: checks[index] }))
        .filter(({ position }) => status === undefined || position.status === status)
      const lines = wanted
        .slice(from, from + MAX_POSITIONS)
        .map(({ position, check }) => lineOf(position, check, investments, portfolios))
      const { facts, table } = partOf(lines, from, wanted.length)
      return { facts: { positionsByStatus: countsOf(all), ...facts }, table }
    },
  }
}

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
  return {
    portfolio: portfolios.short(position.portfolioId),
    investment: investments.short(position.investment),
    shares: position.shares ?? '',
    status: position.status,
    reason: position.reason ?? '',
    verifiedFrom: check?.verifiedFrom ?? '',
    gapDay: check?.firstGap?.day ?? '',
    expected: check?.firstGap?.expected ?? '',
    found: check?.firstGap?.found ?? '',
    isin: shortText(position.isin),
    name: description(position.name),
  }
}
