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

/** Identifiers of a whole list. */
export interface ListIdentifiers {
  /** Of the rows. Only a tool that shows them shortens them: a list may have 200,000. */
  rows: string[]
  investments: Identifiers
  owners: Identifiers
}

/** Returns the portfolio or the account of a row. */
export const ownerOf = (row: Row) => ('portfolioId' in row ? row.portfolioId : row.accountId)

/** Returns the identifier of a row. */
export const idOf = (row: Row) => ('transactionId' in row ? row.transactionId : row.movementId)

/** Iterates over all rows of a list, newest first. A list may have 200,000 rows: keep only what you need of each. */
export function rowsOf(copy: SqliteStore, list: ListArgument): Iterable<Row> {
  return list === 'portfolio' ? copy.portfolioTransactions() : copy.accountTransactions()
}

/**
 * Calls `take` with each selected row, newest first.
 * @throws Refusal for a type or an identifier that the list does not have: a result of 0 rows would be wrong
 */
export function select(
  copy: SqliteStore,
  filters: Filters,
  take: (row: Row) => void,
): ListIdentifiers {
  const { list, from = '', to = '9999-12-31', types, investment, portfolioOrAccount } = filters
  if (from > to) throw new Refusal('from is after to.')
  const text = filters.text?.toLowerCase()
  const ids: string[] = []
  const investments = new Set<string | null>()
  const owners = new Set<string>()
  const foundTypes = new Set<string>()
  for (const row of rowsOf(copy, list)) {
    ids.push(idOf(row))
    investments.add(row.investment)
    owners.add(ownerOf(row))
    foundTypes.add(row.type)
    const day = effectiveDay(row)
    if (day < from || day > to) continue
    if (types !== undefined && !types.includes(row.type)) continue
    if (investment !== undefined && !beginsWith(row.investment, investment)) continue
    if (portfolioOrAccount !== undefined && !beginsWith(ownerOf(row), portfolioOrAccount)) continue
    if (text !== undefined && !row.description?.toLowerCase().includes(text)) continue
    take(row)
  }
  checkTypes(list, types ?? [], foundTypes)
  const identifiers = {
    rows: ids,
    investments: new Identifiers(investments),
    owners: new Identifiers(owners),
  }
  // A beginning that several identifiers have would select too many rows.
  if (investment !== undefined) identifiers.investments.expectOne('investment', investment)
  if (portfolioOrAccount !== undefined) identifiers.owners.expectOne(list, portfolioOrAccount)
  return identifiers
}

const beginsWith = (id: string | null, beginning: string) =>
  id?.startsWith(beginning.toLowerCase()) ?? false

/** Accepts the documented types, and those of a later version of the service that the list has. */
function checkTypes(list: ListArgument, types: string[], found: Set<string>): void {
  const known = new Set(TYPES[list])
  if (types.every((type) => known.has(type))) return
  for (const type of found) known.add(type)
  const unknown = types.filter((type) => !known.has(type))
  if (unknown.length === 0) return
  const names = unknown.slice(0, 5).map(shortText).join(', ')
  const all = [...known].slice(0, 100).map(shortText).join(', ')
  throw new Refusal(`The ${list} list has no type ${names}. Its types: ${all}.`)
}
