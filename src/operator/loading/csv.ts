import { pipeline, Readable } from 'node:stream'
import { CsvError, type Options, parse } from 'csv-parse'
import { OperatorError } from '../../operator-error.ts'
import { ImportRejected, SHOWN_PROBLEMS } from '../errors.ts'
import { escaped, pluralize } from '../output.ts'
import { CR_ALONE, type Problem } from './row-reader.ts'
import type { Field, Fields } from './row-types.ts'
import { suggestion, visible } from './rules.ts'
import { MAXIMUM_LINE_BYTES, NOT_UTF8, plainBytes, type Source } from './source.ts'

/** Records that are passed on together. */
const BATCH = 200

type Cell = string | null
/** Sets a member of a row to the value in its cell. */
type Setter = (row: Record<string, unknown>, cells: Cell[]) => void

/** A row as JSON.parse would return it, and the line on which its record starts. */
export interface CsvRow {
  line: number
  row: Record<string, unknown>
}

/**
 * Reads the rows of CSV (RFC 4180). A row has the members that the header names. Members of an object are named
 * `retentionFrom` or, where other objects have the name too, `marketer.name`.
 * @throws ImportRejected for the first record that is not CSV, or a header with an unknown field
 * @throws OperatorError if the source is not UTF-8
 */
export async function* readCsv(source: Source, fields: Fields): AsyncGenerator<CsvRow[]> {
  let setters: Setter[] | undefined
  let names = 0
  let breaksInCells = 0
  const options: Options<unknown> = {
    record_delimiter: ['\r\n', '\n'],
    skip_empty_lines: true,
    max_record_size: MAXIMUM_LINE_BYTES,
    // As in PostgreSQL: "" is an empty text, and no characters are null.
    cast: (text, { quoting }) => (text === '' && !quoting ? null : text),
    on_record: (record, { records, empty_lines }) => {
      const cells = record as Cell[]
      const line = records + empty_lines + breaksInCells
      // The lines of csv-parse are wrong with CRLF in cells.
      for (const cell of cells) breaksInCells += (cell?.split('\n').length ?? 1) - 1
      if (setters === undefined) {
        setters = settersOf(cells, fields, source)
        names = cells.length
        return null
      }
      // Spreadsheets write a blank row as commas, some with a pair of quotes for each field.
      if (cells.every((cell) => !cell)) return null
      const row = {}
      for (const set of setters) set(row, cells)
      return { line, row }
    },
  }
  const parser = pipeline(Readable.from(decode(source)), parse(options as Options), () => {})
  let rows: CsvRow[] = []
  try {
    for await (const row of parser) {
      if (rows.push(row) < BATCH) continue
      yield rows
      rows = []
    }
    yield rows
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const { code, message, record } = error
    const line = Number(error.records) + Number(error.empty_lines) + breaksInCells + 1
    const explanation =
      code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH'
        ? `the header has ${pluralize(names, 'field')}, and this record ${(record as Cell[]).length}`
        : // The line that csv-parse counts is another one if cells have line breaks.
          message.replace(/ at line \d+/, '')
    throw rejected(source, [{ line, detail: `not valid CSV: ${explanation}` }])
  }
}

function rejected({ name: file }: Source, problems: Problem[]): ImportRejected {
  const shown = problems.map(({ line = 1, detail, ...field }) => ({
    file,
    line,
    ...field,
    reason: detail,
  }))
  return new ImportRejected(shown.slice(0, SHOWN_PROBLEMS), problems.length)
}

async function* decode(source: Source): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of plainBytes(source)) yield decoder.decode(chunk, { stream: true })
    yield decoder.decode()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new OperatorError(`${escaped(source.name)} is ${NOT_UTF8}.`)
  }
}

/** @throws ImportRejected if the header has unknown or repeated names, or is missing */
function settersOf(header: Cell[], fields: Fields, source: Source): Setter[] {
  const known = columnNames(fields)
  if (header.some((cell) => cell?.includes('\r'))) throw rejected(source, [{ detail: CR_ALONE }])
  // More names than twice the fields are no header either.
  if (!header.some((cell) => known.has(cell ?? '')) || header.length > 2 * known.size) {
    const example = fields.inOrder.slice(0, 2).map(({ path }) => path)
    const detail = `the header must have names of fields, separated by commas: ${example}`
    throw rejected(source, [{ detail }])
  }
  const problems: Problem[] = []
  /** Index of the cell of each field. `retentionFrom` and `retentionDetail.retentionFrom` are the same. */
  const columns = new Map<Field | string, number>()
  for (const [index, cell] of header.entries()) {
    const name = cell ?? ''
    const field = visible(name.slice(0, 60))
    const meaning = known.get(name) ?? name
    if (name === '') problems.push({ detail: `field ${index + 1} of the header has no name` })
    else if (columns.has(meaning)) problems.push({ field, detail: 'the field appears twice' })
    else if (meaning === name)
      problems.push({ field, detail: `there is no such field${suggestion(name, known.keys())}` })
    columns.set(meaning, index)
  }
  if (problems.length > 0) throw rejected(source, problems)
  return fields.inOrder.flatMap((field) => setterOf(field, columns) ?? [])
}

function setterOf(field: Field, columns: Map<Field | string, number>): Setter | undefined {
  const index = columns.get(field)
  if (index !== undefined)
    return (row, cells) => {
      row[field.name] = jsonValue(cells[index] ?? null, field)
    }
  const parts = field.members?.inOrder.filter((part) => columns.has(part)) ?? []
  if (parts.length === 0) return undefined
  const setters = parts.flatMap((part) => setterOf(part, columns) ?? [])
  return (row, cells) => {
    const members = {}
    for (const set of setters) set(members, cells)
    const isNull = Object.values(members).every((value) => value === null || value === '')
    row[field.name] = isNull ? null : members
  }
}

/** Fields without members by their names in a header. */
function columnNames({ inOrder }: Fields): Map<string, Field> {
  const groups = inOrder.filter(({ members }) => members)
  const names = new Map<string, Field>()
  for (const field of inOrder) {
    if (!field.members) names.set(field.path, field)
    for (const [name, member] of field.members?.byName ?? []) {
      names.set(member.path, member)
      if (groups.length === 1) names.set(name, member)
    }
  }
  return names
}

/** Returns the value that JSON would have. A text may be empty; another field is null then. */
function jsonValue(cell: Cell, { rule }: Field): unknown {
  if (cell === null || (cell === '' && rule('') !== undefined)) return null
  // Spreadsheets write TRUE.
  const isTrue = cell.toLowerCase() === 'true'
  const isBoolean = isTrue || cell.toLowerCase() === 'false'
  return isBoolean && rule(true) === undefined ? isTrue : cell
}
