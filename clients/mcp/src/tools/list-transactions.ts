import { type Static, Type } from '@sinclair/typebox'
import { effectiveDay, type SqliteStore } from '../../../typescript/src/index.ts'
import { type Line, partOf } from '../answer.ts'
import { filters, offset, oneOf } from '../arguments.ts'
import { Identifiers } from '../identifiers.ts'
import { idOf, type ListIdentifiers, ownerOf, type Row, select } from '../selection.ts'
import { description, shortText } from '../texts.ts'
import type { Answer } from '../tool.ts'
import type { ListArgument } from '../types.ts'

const DEFAULT_LIMIT = 50

const NOTE =
  'By effective day: rows that came late or were corrected have older days, so this is not what changed since then.'

function inputOf(connections: readonly string[]) {
  const limit = Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: `default ${DEFAULT_LIMIT}` }),
  )
  const properties = { connection: oneOf(connections), ...filters, limit, offset }
  return Type.Object(properties, { additionalProperties: false })
}

export function listTransactions(connections: readonly string[]) {
  const input = inputOf(connections)
  return {
    name: 'list_transactions',
    description:
      'Rows of one list, newest first. Unknown fields are empty. Never add rows: call summarize. It cannot tell what changed since an earlier time.',
    input,
    work: (values: Static<typeof input>, copy: SqliteStore): Answer => {
      const from = values.offset ?? 0
      const limit = values.limit ?? DEFAULT_LIMIT
      const rows: Row[] = []
      let total = 0
      const identifiers = select(copy, values, (row) => {
        if (total >= from && total < from + limit) rows.push(row)
        total += 1
      })
      const ids = new Identifiers(identifiers.rows)
      const lines = rows.map((row) => lineOf(row, values.list, identifiers, ids))
      const { facts, table } = partOf(lines, from, total)
      const note = values.from === undefined ? {} : { note: NOTE }
      return { facts: { list: values.list, ...facts, ...note }, table }
    },
  }
}

/** Columns in the order of the table. Without the original times, which repeat the others in another time zone. */
function lineOf(
  row: Row,
  list: ListArgument,
  { investments, owners }: ListIdentifiers,
  ids: Identifiers,
): Line {
  const day = effectiveDay(row)
  const { operationDateHour, valueDateDay } = row
  const line: Line = {
    day,
    hour: shortText(operationDateHour),
    valueDay: valueDateDay === day ? '' : (valueDateDay ?? ''),
    type: shortText(row.type),
    amount: row.amount ?? '',
    currency: shortText(row.currency),
    commission: row.commission ?? '',
    taxes: row.taxes ?? '',
    exchangeRate: row.exchangeRate ?? '',
    localCurrency: shortText(row.localCurrency),
  }
  if ('transactionId' in row) {
    line.titles = row.titles ?? ''
    line.price = row.price ?? ''
    line.amountBaseCurrency = row.amountBaseCurrency ?? ''
    line.retentionFrom = row.retentionDetail?.retentionFrom ?? ''
    line.retentionTo = row.retentionDetail?.retentionTo ?? ''
    line.related = ids.short(row.relatedTransaction)
  }
  line.id = ids.short(idOf(row))
  line[list] = owners.short(ownerOf(row))
  line.investment = investments.short(row.investment)
  line.description = description(row.description)
  return line
}
