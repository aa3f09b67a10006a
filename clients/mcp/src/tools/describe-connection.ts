import { Type } from '@sinclair/typebox'
import { effectiveDay, type SqliteStore } from '../../../typescript/src/index.ts'
import { oneOf } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { ownerOf, rowsOf } from '../selection.ts'
import { shortText } from '../texts.ts'
import type { Answer } from '../tool.ts'
import type { ListArgument } from '../types.ts'

/** Most entries of each kind. */
const MAX_ENTRIES = 40

export function describeConnection(connections: readonly string[]) {
  return {
    name: 'describe_connection',
    description:
      'What a connection has: rows, days, types, currencies, portfolios and accounts. Call it first.',
    input: Type.Object({ connection: oneOf(connections) }, { additionalProperties: false }),
    work: (_input: object, copy: SqliteStore): Answer => ({
      facts: {
        portfolio: factsOf(copy, 'portfolio'),
        account: factsOf(copy, 'account'),
        transferOrders: [...copy.transferOrders()].length,
      },
    }),
  }
}

function factsOf(copy: SqliteStore, list: ListArgument) {
  const rows = rowsOf(copy, list)
  const owners = new Identifiers(rows.map(ownerOf))
  const [newest] = rows
  const oldest = rows.at(-1)
  return {
    rows: rows.length,
    firstDay: oldest === undefined ? null : effectiveDay(oldest),
    lastDay: newest === undefined ? null : effectiveDay(newest),
    rowsByType: counts(rows.map((row) => shortText(row.type))),
    rowsByCurrency: counts(rows.map((row) => shortText(row.currency))),
    [list === 'portfolio' ? 'rowsByPortfolio' : 'rowsByAccount']: counts(
      rows.map((row) => owners.short(ownerOf(row))),
    ),
  }
}

/** Counts equal texts, the most frequent ones first. Says how many it leaves out. */
function counts(texts: string[]): Record<string, number> {
  const found = new Map<string, number>()
  for (const text of texts) found.set(text, (found.get(text) ?? 0) + 1)
  const all = [...found].sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
  const shown = all.slice(0, MAX_ENTRIES)
  if (all.length > shown.length) shown.push(['…others', all.length - shown.length])
  return Object.fromEntries(shown)
}
