import { type Static, Type } from '@sinclair/typebox'
import {
  effectiveDay,
  positionEffect,
  type SqliteStore,
  sum,
} from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { filters, offset, oneOf } from '../arguments.ts'
import { type ListIdentifiers, ownerOf, type Row, select } from '../selection.ts'
import { shortText } from '../texts.ts'
import type { Answer } from '../tool.ts'
import type { ListArgument } from '../types.ts'

const KEYS = ['year', 'month', 'type', 'investment', 'portfolioOrAccount'] as const
type Key = (typeof KEYS)[number]

/** Groups of an answer; fewer if they exceed its bytes. */
const MAX_GROUPS = 500

function inputOf(connections: readonly string[]) {
  const by = Type.Optional(
    Type.Array(oneOf(KEYS), { maxItems: 3, uniqueItems: true, description: 'default ["type"]' }),
  )
  const properties = { connection: oneOf(connections), ...filters, by, offset }
  return Type.Object(properties, { additionalProperties: false })
}

export function summarize(connections: readonly string[]) {
  const input = inputOf(connections)
  return {
    name: 'summarize',
    description:
      'Exact sums of one list, by currency and by up to three keys. It converts no currencies. Never add the sums of both lists: dividends are in both; the account list has the cash that arrived. It cannot tell realised gains: amount of SELL is proceeds.',
    input,
    work: (values: Static<typeof input>, copy: SqliteStore): Answer => {
      const { list, by = ['type'], offset: from = 0 } = values
      const found = new Map<string, Group>()
      let rows = 0
      const identifiers = select(copy, values, (row) => {
        rows += 1
        addTo(found, row, by)
      })
      const groups = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
      const lines = groups
        .slice(from, from + MAX_GROUPS)
        .map((group) => lineOf(group, by, identifiers))
      const { facts, table } = partOf(lines, from, groups.length)
      const { total: groupCount, ...part } = facts
      const notes = notesOf(list, groups)
      const noted = notes.length === 0 ? {} : { notes }
      return {
        facts: { list, rows, groups: groupCount, ...part, ...noted },
        table,
      }
    },
  }
}

/** Fields that are added. */
const FIELDS = ['amount', 'commission', 'taxes'] as const

interface Group {
  /** Keys of the call, with whole identifiers, and the currency. */
  keys: Line
  types: Set<string>
  rows: number
  /** Values of the rows, by field. The rows themselves need more memory. */
  values: Record<(typeof FIELDS)[number] | 'titles', Row['amount'][]>
}

function addTo(groups: Map<string, Group>, row: Row, by: readonly Key[]): void {
  const keys: Line = {}
  for (const key of by) keys[key] = keyOf(row, key)
  keys.currency = shortText(row.currency)
  const id = Object.values(keys).join('\t')
  const group = groups.get(id) ?? newGroup(keys)
  groups.set(id, group)
  group.rows += 1
  group.types.add(row.type)
  for (const field of FIELDS) group.values[field].push(row[field])
  group.values.titles.push('titles' in row ? row.titles : null)
}

function newGroup(keys: Line): Group {
  const values = { amount: [], commission: [], taxes: [], titles: [] }
  return { keys, types: new Set(), rows: 0, values }
}

function keyOf(row: Row, key: Key): string {
  if (key === 'year') return effectiveDay(row).slice(0, 4)
  if (key === 'month') return effectiveDay(row).slice(0, 7)
  if (key === 'type') return shortText(row.type)
  if (key === 'investment') return row.investment ?? ''
  return ownerOf(row)
}

/** Sums of the known values, and in how many rows a value is unknown. A sum of no value is empty, not 0. */
function lineOf({ keys, rows, values }: Group, by: readonly Key[], ids: ListIdentifiers): Line {
  const line: Line = {}
  for (const [key, text] of Object.entries(keys)) line[key] = shortenedKey(key, text, ids)
  line.rows = String(rows)
  for (const field of FIELDS) addSum(line, field, values[field])
  // Shares of several investments, or of purchases and sales, have no sum.
  if (by.includes('type') && by.includes('investment')) addSum(line, 'titles', values.titles)
  return line
}

function shortenedKey(key: string, text: string, { investments, owners }: ListIdentifiers): string {
  if (key === 'investment') return investments.short(text)
  return key === 'portfolioOrAccount' ? owners.short(text) : text
}

function addSum(line: Line, field: string, values: Row['amount'][]): void {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return
  line[field] = sum(known)
  const unknown = values.length - known.length
  if (unknown > 0) line[`rowsWithout_${field}`] = String(unknown)
}

/** Says what a sum of the portfolio list does not mean. */
function notesOf(list: ListArgument, groups: Group[]): string[] {
  if (list === 'account') return []
  const notes: string[] = []
  const types = new Set(groups.flatMap((group) => [...group.types]))
  if (groups.some((group) => group.types.size > 1))
    notes.push('A sum adds rows of several types, such as purchases and sales: group by type.')
  if ([...types].some((type) => positionEffect(type) === '-'))
    notes.push('Amounts of outgoing types are proceeds, not gains: realised gains cannot be told.')
  if (types.has('DIVIDENDS') || types.has('COUPON'))
    notes.push(
      'Whether amount of DIVIDENDS and COUPON is before or after taxes is not stated. The account list has the cash.',
    )
  return notes
}
