import {
  type AccountTransaction,
  effectiveDay,
  type PortfolioTransaction,
  type SqliteStore,
} from '../../typescript/src/index.ts'
import { Identifiers } from './identifiers.ts'
import { Refusal } from './refusal.ts'
import { shortText } from './texts.ts'
import { type ListArgument, TYPES } from './types.ts'

export type Row = PortfolioTransaction | AccountTransaction

/** Filters of a call: see `filters`. */
export interface Filters {
  list: ListArgument
  from?: string
  to?: string
  types?: string[]
  investment?: string
  portfolioOrAccount?: string
  text?: string
}

/** Rows that a call selects, newest first, and the identifiers of the whole list. */
export interface Selection {
  rows: Row[]
  /** All rows of the list. */
  all: Row[]
  investments: Identifiers
  owners: Identifiers
}

/** Returns the portfolio or the account of a row. */
export const ownerOf = (row: Row) => ('portfolioId' in row ? row.portfolioId : row.accountId)

/** Returns all rows of a list, newest first. */
export function rowsOf(copy: SqliteStore, list: ListArgument): Row[] {
  return [...(list === 'portfolio' ? copy.portfolioTransactions() : copy.accountTransactions())]
}

/**
 * Selects rows of a list.
 * @throws Refusal for a type or an identifier that the list does not have: a result of 0 rows would be wrong
 */
export function select(copy: SqliteStore, filters: Filters): Selection {
  const { list, from = '', to = '9999-12-31', types, text } = filters
  if (from > to) throw new Refusal('from is after to.')
  const all = rowsOf(copy, list)
  checkTypes(list, types ?? [], all)
  const investments = new Identifiers(all.map((row) => row.investment))
  const owners = new Identifiers(all.map(ownerOf))
  const investment =
    filters.investment === undefined
      ? undefined
      : investments.find('investment', filters.investment)
  const owner =
    filters.portfolioOrAccount === undefined
      ? undefined
      : owners.find(list, filters.portfolioOrAccount)
  const part = text?.toLowerCase()
  const rows = all.filter((row) => {
    const day = effectiveDay(row)
    if (day < from || day > to) return false
    if (types !== undefined && !types.includes(row.type)) return false
    if (investment !== undefined && row.investment !== investment) return false
    if (owner !== undefined && ownerOf(row) !== owner) return false
    return part === undefined || (row.description ?? '').toLowerCase().includes(part)
  })
  return { rows, all, investments, owners }
}

/** Accepts the documented types, and those of a later version of the service that the list has. */
function checkTypes(list: ListArgument, types: string[], rows: Row[]): void {
  const known = new Set(TYPES[list])
  if (types.every((type) => known.has(type))) return
  for (const { type } of rows) known.add(type)
  const unknown = types.filter((type) => !known.has(type))
  if (unknown.length === 0) return
  const names = unknown.slice(0, 5).map(shortText).join(', ')
  const all = [...known].slice(0, 100).map(shortText).join(', ')
  throw new Refusal(`The ${list} list has no type ${names}. Its types: ${all}.`)
}
