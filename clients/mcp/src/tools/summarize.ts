import { effectiveDay, positionEffect, sum } from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { connection, filters, offset, someOf, type Values } from '../arguments.ts'
import { CHARGES, chargeOf, placesOf } from '../money.ts'
import { nameOf } from '../names.ts'
import { ownerOf, type Row, type Selection, select } from '../selection.ts'
import { shortText } from '../texts.ts'
import { type Answer, defineTool } from '../tool.ts'
import type { ListArgument } from '../types.ts'

const KEYS = ['year', 'month', 'type', 'investment', 'portfolioOrAccount'] as const
type Key = (typeof KEYS)[number]

/** Groups of an answer; fewer if they exceed its bytes. */
const MAX_GROUPS = 500

const argumentsOf = (connections: readonly string[]) => ({
  connection: connection(connections),
  ...filters,
  by: someOf(KEYS, 3, 'at most 3; default ["type"]'),
  offset,
})

export function summarize(connections: readonly string[]) {
  return defineTool({
    name: 'summarize',
    description:
      'Exact sums of one list, by currency and by up to three keys. It converts no currencies. Never add the sums of both lists, or of two connections: dividends are in both lists; the account list has the cash that arrived. It cannot tell realised gains: amount of SELL is proceeds.',
    input: argumentsOf(connections),
    work: (values, copy, names): Answer => {
      const { list, by = ['type'], offset: from = 0 } = values
      const found = new Map<string, Group>()
      let rows = 0
      const selection = select(copy, names, values, (row) => {
        rows += 1
        addTo(found, row, by)
      })
      const groups = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, group]) => group)
      const lines = groups
        .slice(from, from + MAX_GROUPS)
        .map((group) => lineOf(group, values, selection))
      const { facts, table } = partOf(lines, from, groups.length)
      const { total: groupCount, ...part } = facts
      const notes = [...selection.notes, ...notesOf(list, groups)]
      if (connections.length > 1 && rows > 0) notes.push(ONE_CONNECTION)
      const noted = notes.length === 0 ? {} : { notes }
      return {
        facts: { list, rows, groups: groupCount, ...part, ...noted },
        table,
      }
    },
  })
}

const ONE_CONNECTION =
  'The sums are of this connection alone. Sums of several connections are not added: state each one.'

/** Fields that are added. The account list has no retention. */
const FIELDS = ['amount', ...CHARGES] as const
type Field = (typeof FIELDS)[number]

interface Group {
  /** Keys of the call, with whole identifiers, and the currency. */
  keys: Record<string, string>
  types: Set<string>
  rows: number
  /** Values of the rows, by field. The rows themselves need more memory. */
  values: Record<Field | 'titles', Value[]>
}

/** Null if it is unknown, undefined if the list does not have the field. */
type Value = Row['amount'] | undefined

function addTo(groups: Map<string, Group>, row: Row, by: readonly Key[]): void {
  const keys: Record<string, string> = {}
  for (const key of by) keys[key] = keyOf(row, key)
  keys.currency = shortText(row.currency)
  const id = Object.values(keys).join('\t')
  const group = groups.get(id) ?? newGroup(keys)
  groups.set(id, group)
  group.rows += 1
  group.types.add(row.type)
  group.values.amount.push(row.amount)
  for (const field of CHARGES) group.values[field].push(chargeOf(row, field))
  group.values.titles.push('titles' in row ? row.titles : undefined)
}

function newGroup(keys: Record<string, string>): Group {
  const values = {
    amount: [],
    commission: [],
    taxes: [],
    retentionFrom: [],
    retentionTo: [],
    titles: [],
  }
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
function lineOf(
  { keys, types, rows, values }: Group,
  call: Values<ReturnType<typeof argumentsOf>>,
  selection: Selection,
): Line {
  const line: Line = {}
  for (const [key, text] of Object.entries(keys)) {
    line[key] = shortenedKey(key, text, selection)
    if (key === 'investment') line.name = nameOf(selection.names, text === '' ? null : text)
  }
  line.rows = String(rows)
  for (const field of FIELDS) addSum(line, field, values[field])
  if (changesOnePosition(types, call)) addSum(line, 'titles', values.titles)
  return line
}

/**
 * True if titles have a sum. Those of several investments, of purchases and sales, and of types that state a position have
 * none.
 */
function changesOnePosition(
  types: Set<string>,
  { by = ['type'], investment }: Values<ReturnType<typeof argumentsOf>>,
): boolean {
  const [type = '', ...others] = types
  const effect = positionEffect(type)
  const hasOneType = others.length === 0 && (effect === '+' || effect === '-')
  return hasOneType && (investment !== undefined || by.includes('investment'))
}

function shortenedKey(key: string, text: string, { investments, owners }: Selection): string {
  if (key === 'investment') return investments.short(text)
  return key === 'portfolioOrAccount' ? owners.short(text) : text
}

function addSum(line: Line, field: string, values: Value[]): void {
  const known = values.filter((value) => value !== null && value !== undefined)
  const unknown = values.filter((value) => value === null).length
  if (known.length + unknown === 0) return
  line[field] = known.length === 0 ? '' : sum(known)
  if (known.length > 0 && unknown > 0) line[`rowsWithout_${field}`] = String(unknown)
}

/** Says what the sums do not mean, and where else the same money may stand. */
function notesOf(list: ListArgument, groups: Group[]): string[] {
  const notes: string[] = []
  const types = new Set(groups.flatMap((group) => [...group.types]))
  const known = new Set<string>(
    CHARGES.filter((field) =>
      groups.some(({ values }) => values[field].some((value) => (value ?? null) !== null)),
    ),
  )
  if (list === 'portfolio') {
    if (groups.some((group) => group.types.size > 1))
      notes.push('A sum adds rows of several types, such as purchases and sales: group by type.')
    if ([...types].some((type) => positionEffect(type) === '-'))
      notes.push(
        'Amounts of outgoing types are proceeds, not gains: realised gains cannot be told.',
      )
    if (types.has('DIVIDENDS') || types.has('COUPON'))
      notes.push(
        'Whether amount of DIVIDENDS and COUPON is before or after taxes is not stated. The account list has the cash.',
      )
  }
  return [...notes, ...placesOf(types, known)]
}
