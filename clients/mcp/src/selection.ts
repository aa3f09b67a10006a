import {
  type AccountTransaction,
  effectiveDay,
  type InvestmentNames,
  type PortfolioTransaction,
  type SqliteStore,
} from '../../typescript/src/index.ts'
import type { filters as filterArguments, Values } from './arguments.ts'
import { Identifiers } from './identifiers.ts'
import { namesOf } from './names.ts'
import { Refusal } from './refusal.ts'
import { shortText } from './texts.ts'
import { type ListArgument, TYPES } from './types.ts'

export type Row = PortfolioTransaction | AccountTransaction

/** Filters of a call. */
export type Filters = Values<typeof filterArguments>

/** What a selection has read of the whole list. */
export interface Selection {
  /** Identifiers of the rows. Only a tool that shows them shortens them: a list may have 200,000. */
  rows: string[]
  investments: Identifiers
  owners: Identifiers
  /** Names of investments, of the app or from transfer orders. */
  names: Map<string, string>
  /** If no row is selected: why. */
  notes: string[]
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
  given: InvestmentNames,
  filters: Filters,
  take: (row: Row) => void,
): Selection {
  const { list, from = '', to = '9999-12-31', types, investment, portfolioOrAccount } = filters
  if (from > to) throw new Refusal('from is after to.')
  const names = namesOf(copy, given)
  const hasText = textFilterOf(filters.text, names)
  const ids: string[] = []
  const investments = new Set<string | null>()
  const owners = new Set<string>()
  const foundTypes = new Set<string>()
  let selected = 0
  let withText = 0
  let firstDay = ''
  let lastDay = ''
  for (const row of rowsOf(copy, list)) {
    ids.push(idOf(row))
    investments.add(row.investment)
    owners.add(ownerOf(row))
    foundTypes.add(row.type)
    const day = effectiveDay(row)
    firstDay = day
    lastDay ||= day
    if (!hasText(row)) continue
    withText += 1
    if (day < from || day > to) continue
    if (types !== undefined && !types.includes(row.type)) continue
    if (investment !== undefined && !row.investment?.startsWith(investment)) continue
    if (portfolioOrAccount !== undefined && !ownerOf(row).startsWith(portfolioOrAccount)) continue
    selected += 1
    take(row)
  }
  checkTypes(list, types ?? [], foundTypes)
  const selection = {
    rows: ids,
    investments: new Identifiers(investments),
    owners: new Identifiers(owners),
    names,
    notes: [] as string[],
  }
  // A beginning that several identifiers have would select too many rows.
  if (investment !== undefined) selection.investments.expectOne('investment', investment)
  if (portfolioOrAccount !== undefined) selection.owners.expectOne(list, portfolioOrAccount)
  if (selected === 0) {
    const range = ids.length === 0 ? 'no rows' : `${ids.length} rows from ${firstDay} to ${lastDay}`
    selection.notes.push(`No row is selected. The ${list} list has ${range}.`)
    if (filters.text !== undefined)
      selection.notes.push(
        `${withText} rows of the list have the text in their description or in the name of their investment.`,
      )
  }
  return selection
}

/** Text without accents and case: "Lumière" is found as "lumiere". */
const folded = (text: string) =>
  text
    .normalize('NFD')
    .replaceAll(/[\u0300-\u036f]/g, '')
    .normalize('NFC')
    .toLowerCase()

/** Returns a filter that also finds rows by the name of their investment. */
function textFilterOf(text: string | undefined, names: Map<string, string>) {
  if (text === undefined) return () => true
  const wanted = folded(text)
  const contains = (other: string | null | undefined) => folded(other ?? '').includes(wanted)
  const named = new Set([...names].filter(([, name]) => contains(name)).map(([id]) => id))
  return (row: Row) => contains(row.description) || named.has(row.investment ?? '')
}

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
