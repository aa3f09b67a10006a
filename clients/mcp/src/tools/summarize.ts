import { type Static, Type } from '@sinclair/typebox'
import {
  effectiveDay,
  positionEffect,
  type SqliteStore,
  sum,
} from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { filters, offset, oneOf } from '../arguments.ts'
import { ownerOf, type Row, type Selection, select } from '../selection.ts'
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
      const { list, by = ['type'] } = values
      const selection = select(copy, values)
      const groups = groupsOf(selection, by)
      const lines = groups.map(({ keys, rows }) => lineOf(keys, rows, by))
      const { facts, table } = partOf(lines, values.offset ?? 0, MAX_GROUPS)
      const { total: groupCount, ...part } = facts
      const notes = notesOf(list, groups)
      const noted = notes.length === 0 ? {} : { notes }
      return {
        facts: { list, rows: selection.rows.length, groups: groupCount, ...part, ...noted },
        table,
      }
    },
  }
}

interface Group {
  /** Currency, and the keys of the call. */
  keys: Line
  rows: Row[]
}

function groupsOf(selection: Selection, by: readonly Key[]): Group[] {
  const groups = new Map<string, Group>()
  for (const row of selection.rows) {
    const keys: Line = {}
    for (const key of by) keys[key] = keyOf(row, key, selection)
    keys.currency = shortText(row.currency)
    const id = Object.values(keys).join('\t')
    const group = groups.get(id)
    if (group) group.rows.push(row)
    else groups.set(id, { keys, rows: [row] })
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
}

function keyOf(row: Row, key: Key, { owners, investments }: Selection): string {
  if (key === 'year') return effectiveDay(row).slice(0, 4)
  if (key === 'month') return effectiveDay(row).slice(0, 7)
  if (key === 'type') return shortText(row.type)
  if (key === 'investment') return investments.short(row.investment)
  return owners.short(ownerOf(row))
}

/** Sums of the known values, and in how many rows a value is unknown. A sum of no value is empty, not 0. */
function lineOf(keys: Line, rows: Row[], by: readonly Key[]): Line {
  const line: Line = { ...keys, rows: String(rows.length) }
  for (const field of ['amount', 'commission', 'taxes'] as const)
    addSum(
      line,
      field,
      rows.map((row) => row[field]),
    )
  // Shares of several investments, or of purchases and sales, have no sum.
  if (by.includes('type') && by.includes('investment'))
    addSum(
      line,
      'titles',
      rows.map((row) => ('titles' in row ? row.titles : null)),
    )
  return line
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
  const types = new Set(groups.flatMap(({ rows }) => rows.map(({ type }) => type)))
  if (groups.some(({ rows }) => rows.some(({ type }) => type !== rows[0]?.type)))
    notes.push('A sum adds rows of several types, such as purchases and sales: group by type.')
  if ([...types].some((type) => positionEffect(type) === '-'))
    notes.push('Amounts of outgoing types are proceeds, not gains: realised gains cannot be told.')
  if (types.has('DIVIDENDS') || types.has('COUPON'))
    notes.push(
      'Whether amount of DIVIDENDS and COUPON is before or after taxes is not stated. The account list has the cash.',
    )
  return notes
}
