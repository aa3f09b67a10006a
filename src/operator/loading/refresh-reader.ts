import { SHOWN_PROBLEMS } from '../errors.ts'
import type { Replacement } from './merge.ts'
import { isObject, Problems, type Row, RowReader, readJson, reportUnknown } from './row-reader.ts'
import { type RowType, rowTypes } from './row-types.ts'
import { describe, isDay } from './rules.ts'
import type { Line } from './source.ts'

export interface ListOfRows {
  type: RowType
  rows: Row[]
}

/** A line: the refresh of one connection. */
export interface Refresh {
  connection: string | undefined
  lists: ListOfRows[]
  replace: Replacement | undefined
  errors: Problems['shown']
}

const readers = Object.values(rowTypes).map((type) => ({ type, reader: new RowReader(type) }))
const MEMBERS = new Set(['connection', ...readers.map(({ type }) => type.list), 'replace'])

/** Reads a line of a refresh with the checks of the import. */
export function readRefresh(line: Line): Refresh {
  const problems = new Problems()
  const nothing = { connection: undefined, lists: [], replace: undefined, errors: problems.shown }
  const value = readJson(line, problems)
  return { ...nothing, ...(value !== undefined && readLine(value, problems)) }
}

function readLine(line: unknown, problems: Problems) {
  if (!isObject(line)) return problems.add('a JSON object is expected: the refresh of a connection')
  const { connection } = line
  const isId = typeof connection === 'string' && connection !== ''
  if (connection === undefined) problems.add('the field is missing', 'connection')
  else if (!isId) {
    const detail = `the id of a connection is expected, in quotes, not ${describe(connection)}`
    problems.add(detail, 'connection')
  }
  reportUnknown(line, MEMBERS, problems)
  const replace = readReplace(line.replace ?? null, problems)
  const lists: ListOfRows[] = []
  for (const { type, reader } of readers) {
    const rows = line[type.list]
    if (Array.isArray(rows))
      lists.push({ type, rows: readRows(rows, type, reader, replace ?? {}, problems) })
    else if (rows !== undefined)
      problems.add(`an array is expected, not ${describe(rows)}`, type.list)
  }
  return { connection: isId ? connection : undefined, lists, replace }
}

function readRows(
  rows: unknown[],
  type: RowType,
  reader: RowReader,
  range: Replacement,
  problems: Problems,
): Row[] {
  const numbers = new Map<string, number>()
  const valid: Row[] = []
  for (const [index, value] of rows.entries()) {
    // A hostile line has millions of rows, and nobody counts their problems.
    if (problems.total >= SHOWN_PROBLEMS) break
    problems.place = { list: type.list, row: index + 1 }
    const row = reader.read(value, problems, range)
    if (row === undefined) continue
    const id = String(row[type.key.index]).toLowerCase()
    const first = numbers.get(id)
    if (first !== undefined) problems.add(`duplicate of row ${first}`, type.key.field)
    else numbers.set(id, index + 1)
    valid.push(row)
  }
  problems.place = {}
  return valid
}

function readReplace(range: unknown, problems: Problems): Replacement | undefined {
  if (range === null) return undefined
  if (!isObject(range))
    return problems.add(`an object is expected, not ${describe(range)}`, 'replace')
  const replace: Replacement = {}
  for (const [name, value] of Object.entries(range)) {
    const field = `replace.${name.slice(0, 60)}`
    if (name === 'yes' && typeof value === 'boolean') replace.yes = value
    else if (name !== 'from' && name !== 'to') problems.add('from, to or yes is expected', field)
    else if (isDay(value)) replace[name] = value
    else if (value !== null) problems.add('an existing day is expected, as YYYY-MM-DD', field)
  }
  if (replace.from && replace.to && replace.from > replace.to)
    problems.add('from must not be after to', 'replace')
  return replace
}
