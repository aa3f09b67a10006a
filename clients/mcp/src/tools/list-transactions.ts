import { add, exactOf, ZERO } from '../../../typescript/src/decimals.ts'
import {
  effectiveDay,
  type InvestmentNames,
  type SqliteStore,
} from '../../../typescript/src/index.ts'
import { cellOf, type Line, partOf } from '../answer.ts'
import { connection, filters, integer, offset, oneOf } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { CHARGES, chargeOf } from '../money.ts'
import { nameOf } from '../names.ts'
import { type Filters, idOf, ownerOf, type Row, type Selection, select } from '../selection.ts'
import { description, shortText } from '../texts.ts'
import { type Answer, defineTool } from '../tool.ts'
import type { ListArgument } from '../types.ts'

const DEFAULT_LIMIT = 50

const BY_DAY =
  'By effective day: rows that came late or were corrected have older days, so this is not what changed since then.'
const BY_AMOUNT =
  'Largest amounts first, without their sign. Amounts of different currencies do not compare: the largest one of each currency comes first, then the second ones.'

export function listTransactions(connections: readonly string[]) {
  return defineTool({
    name: 'list_transactions',
    description:
      'Rows of one list, newest first. Unknown fields are empty. Never add rows: call summarize. It cannot tell what changed since an earlier time.',
    input: {
      connection: connection(connections),
      ...filters,
      orderBy: oneOf(['day', 'amount'], 'amount: largest first, for each currency'),
      limit: integer(1, 100, `1 to 100, default ${DEFAULT_LIMIT}`),
      offset,
    },
    work: (values, copy, names): Answer => {
      const { list, limit = DEFAULT_LIMIT, offset: from = 0 } = values
      const isByAmount = values.orderBy === 'amount'
      const page = isByAmount
        ? largest(copy, names, values, from, limit)
        : newest(copy, names, values, from, limit)
      const { rows, total, selection } = page
      const ids = new Identifiers(selection.rows)
      const lines = rows.map((row) => lineOf(row, list, selection, ids))
      const { facts, table } = partOf(lines, from, total)
      const notes = [...selection.notes]
      if (isByAmount) notes.push(BY_AMOUNT)
      else if (values.from !== undefined) notes.push(BY_DAY)
      const noted = notes.length === 0 ? {} : { notes }
      return { facts: { list, ...facts, ...noted }, table }
    },
  })
}

/** Rows of a page. */
interface Page {
  rows: Row[]
  total: number
  selection: Selection
}

function newest(
  copy: SqliteStore,
  names: InvestmentNames,
  values: Filters,
  from: number,
  limit: number,
): Page {
  const rows: Row[] = []
  let total = 0
  const selection = select(copy, names, values, (row) => {
    if (total >= from && total < from + limit) rows.push(row)
    total += 1
  })
  return { rows, total, selection }
}

/** What orders a row by its amount. The rows themselves need more memory. */
interface Sized {
  id: string
  currency: string
  amount: Row['amount']
}

/** Reads the list twice: once for the order, and once for the rows of the page. */
function largest(
  copy: SqliteStore,
  names: InvestmentNames,
  values: Filters,
  from: number,
  limit: number,
): Page {
  const amounts: Sized[] = []
  const selection = select(copy, names, values, (row) => {
    amounts.push({ id: idOf(row), currency: row.currency ?? '', amount: row.amount })
  })
  const ids = bySize(amounts).slice(from, from + limit)
  const found = new Map<string, Row>()
  const wanted = new Set(ids)
  select(copy, names, values, (row) => {
    if (wanted.has(idOf(row))) found.set(idOf(row), row)
  })
  const rows = ids.map((id) => found.get(id)).filter((row) => row !== undefined)
  return { rows, total: amounts.length, selection }
}

/** Orders identifiers by the rank within the currency, and then by the currency. Unknown amounts are last. */
function bySize(rows: Sized[]): string[] {
  const amounts = rows.map(({ amount }) => exactOf(amount ?? '0'))
  const scale = Math.max(0, ...new Set(amounts.map((amount) => amount.scale)))
  const all = rows.map(({ id, currency, amount }, index) => {
    const { units } = add(amounts[index] ?? ZERO, { units: 0n, scale })
    return { id, currency, isUnknown: amount === null, size: units < 0n ? -units : units, rank: 0 }
  })
  // The order of equal amounts stays: the newest is first.
  all.sort((a, b) => compare(b.size, a.size))
  const ranks = new Map<string, number>()
  for (const each of all) {
    if (each.isUnknown) continue
    each.rank = ranks.get(each.currency) ?? 0
    ranks.set(each.currency, each.rank + 1)
  }
  all.sort(
    (a, b) =>
      Number(a.isUnknown) - Number(b.isUnknown) ||
      compare(a.rank, b.rank) ||
      compare(a.currency, b.currency),
  )
  return all.map(({ id }) => id)
}

function compare<Value>(a: Value, b: Value): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/**
 * Columns in the order of the table: an unknown value is empty, and a cell that does not apply is undefined. Without the
 * original times, which repeat the others in another time zone.
 */
function lineOf(
  row: Row,
  list: ListArgument,
  { investments, owners, names }: Selection,
  ids: Identifiers,
): Line {
  const day = effectiveDay(row)
  const { operationDateHour, valueDateDay } = row
  const line: Line = {
    day,
    hour: shortText(operationDateHour),
    valueDay: valueDateDay === day ? undefined : (valueDateDay ?? ''),
    type: shortText(row.type),
    amount: row.amount ?? '',
    currency: shortText(row.currency),
  }
  for (const field of CHARGES) line[field] = cellOf(chargeOf(row, field))
  line.exchangeRate = row.exchangeRate ?? ''
  line.localCurrency = shortText(row.localCurrency)
  if ('transactionId' in row) {
    line.titles = row.titles ?? ''
    line.price = row.price ?? ''
    line.amountBaseCurrency = row.amountBaseCurrency ?? ''
    line.related = row.relatedTransaction === null ? undefined : ids.short(row.relatedTransaction)
  }
  line.id = ids.short(idOf(row))
  line[list] = owners.short(ownerOf(row))
  line.investment = investments.short(row.investment)
  line.name = nameOf(names, row.investment)
  line.description = description(row.description)
  return line
}
