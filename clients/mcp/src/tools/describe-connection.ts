import { effectiveDay, type SqliteStore } from '../../../typescript/src/index.ts'
import { connection } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { CHARGES, chargeOf } from '../money.ts'
import { ownerOf, type Row, rowsOf } from '../selection.ts'
import { shortText } from '../texts.ts'
import { type Answer, defineTool } from '../tool.ts'
import type { ListArgument } from '../types.ts'

/** Most entries of each kind. */
const MAX_ENTRIES = 40

export function describeConnection(connections: readonly string[]) {
  return defineTool({
    name: 'describe_connection',
    description:
      'What a connection has: rows, days, types, currencies, portfolios, accounts, and in how many rows a field is unknown. Call it first.',
    input: { connection: connection(connections) },
    work: (_values, copy): Answer => ({
      facts: {
        portfolio: factsOf(copy, 'portfolio'),
        account: factsOf(copy, 'account'),
        transferOrders: [...copy.transferOrders()].length,
      },
    }),
  })
}

function factsOf(copy: SqliteStore, list: ListArgument) {
  let rows = 0
  let firstDay: string | null = null
  let lastDay: string | null = null
  const types = new Map<string, number>()
  const currencies = new Map<string, number>()
  const owners = new Map<string, number>()
  const unknown = new Map<string, number>()
  // The newest row is first.
  for (const row of rowsOf(copy, list)) {
    rows += 1
    firstDay = effectiveDay(row)
    lastDay ??= firstDay
    count(types, row.type)
    count(currencies, row.currency ?? '')
    count(owners, ownerOf(row))
    for (const field of unknownFields(row)) count(unknown, field)
  }
  const identifiers = new Identifiers(owners.keys())
  return {
    rows,
    firstDay,
    lastDay,
    rowsByType: most(types, shortText),
    rowsByCurrency: most(currencies, shortText),
    [list === 'portfolio' ? 'rowsByPortfolio' : 'rowsByAccount']: most(owners, (owner) =>
      identifiers.short(owner),
    ),
    rowsWithout: Object.fromEntries(unknown),
  }
}

/** Returns the figures of a row that are unknown, and whether its investment is. */
function unknownFields(row: Row): string[] {
  const values: Record<string, string | null | undefined> = {
    amount: row.amount,
    investment: row.investment,
  }
  for (const field of CHARGES) values[field] = chargeOf(row, field)
  if ('transactionId' in row) Object.assign(values, { titles: row.titles, price: row.price })
  return Object.keys(values).filter((field) => values[field] === null)
}

function count(counts: Map<string, number>, text: string): void {
  counts.set(text, (counts.get(text) ?? 0) + 1)
}

/** Returns the most frequent texts, and how many entries it leaves out. */
function most(
  counts: Map<string, number>,
  shorten: (text: string) => string,
): Record<string, number> {
  const shortened = new Map<string, number>()
  for (const [text, rows] of counts) {
    const short = shorten(text)
    shortened.set(short, (shortened.get(short) ?? 0) + rows)
  }
  const all = [...shortened].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
  const shown = all.slice(0, MAX_ENTRIES)
  if (all.length > shown.length) shown.push(['…others', all.length - shown.length])
  return Object.fromEntries(shown)
}
