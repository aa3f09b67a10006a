import { pipeline, Readable } from 'node:stream'
import { CsvError, type Options, parse } from 'csv-parse'
import { OperatorError } from '../../operator-error.ts'
import { ImportRejected } from '../errors.ts'
import { escaped } from '../output.ts'
import type { Field, Fields } from './row-types.ts'
import { NUMBER, suggestion, visible } from './rules.ts'
import { MAXIMUM_LINE_BYTES, plainBytes, type Source } from './source.ts'

const BATCH = 200

type Cell = string | null

/** A row as parseJson() would return it, and the line on which its record starts. */
export interface CsvRow {
  line: number
  row: Record<string, unknown>
}

/**
 * Reads CSV (RFC 4180), with the members that the header names. Members of an object are named `retentionFrom` or,
 * where other objects have the name too, `marketer.name`. @throws ImportRejected, OperatorError if it is not UTF-8
 */
export async function* readCsv(source: Source, fields: Fields): AsyncGenerator<CsvRow[]> {
  let columns: Field[] | undefined
  // The lines of csv-parse are wrong with CRLF in cells.
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
      for (const cell of cells) breaksInCells += (cell?.split('\n').length ?? 1) - 1
      // Spreadsheets write a blank row as commas, some with a pair of quotes for each field.
      if (columns && cells.some((cell) => cell)) return { line, row: rowOf(cells, columns) }
      columns ??= columnsOf(cells, fields, source.name)
      return null
    },
  }
  const decoder = new TextDecoderStream('utf-8', { fatal: true })
  const text = ReadableStream.from(plainBytes(source)).pipeThrough(decoder)
  const parser = pipeline(Readable.from(text), parse(options as Options), () => {})
  let rows: CsvRow[] = []
  try {
    for await (const row of parser) {
      if (rows.push(row) < BATCH) continue
      yield rows
      rows = []
    }
    yield rows
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_ENCODING_INVALID_ENCODED_DATA')
      throw new OperatorError(`${escaped(source.name)} is not UTF-8.`)
    if (!(error instanceof CsvError)) throw error
    const { message, records, empty_lines } = error
    const line = Number(records) + Number(empty_lines) + breaksInCells + 1
    // The line that csv-parse counts is another one if cells have line breaks.
    const detail = isJson(error)
      ? 'not CSV: if the file is NDJSON, leave out --format csv'
      : `not valid CSV: ${message.replace(/ (at|on) line \d+/, '')}`
    throw new ImportRejected([{ file: source.name, line, detail }])
  }
}

/** True if the header is the start of an object or array: its first field begins `{"` or `[{"`. */
function isJson({ code, records, index, field }: CsvError): boolean {
  const isHeader = code === 'INVALID_OPENING_QUOTE' && Number(records) === 0 && Number(index) === 0
  return isHeader && /^(\[\s*)?\{/.test(String(field).trimStart())
}

/** @throws ImportRejected for the first name in the header that is unknown or repeated */
function columnsOf(header: Cell[], fields: Fields, file: string): Field[] {
  const known = columnNames(fields)
  const columns: Field[] = []
  for (const [index, name] of header.entries()) {
    const column = known.get(name ?? '')
    // `retentionFrom` and `retentionDetail.retentionFrom` are the same.
    if (column && !columns.includes(column)) columns.push(column)
    else {
      if (header.length === 1 && /[;\t]/.test(name ?? '')) {
        const detail = 'the header has one field: CSV needs commas'
        throw new ImportRejected([{ file, line: 1, detail }])
      }
      const field = visible(name?.slice(0, 60) ?? '') || `field ${index + 1}`
      const detail = column ? 'the field appears twice' : 'there is no such field'
      const advice = column || !name ? '' : suggestion(name, known.keys())
      throw new ImportRejected([{ file, line: 1, field, detail: detail + advice }])
    }
  }
  return columns
}

/** Fields without members, by their names in a header. The name of a member is enough if there is one group. */
function columnNames(fields: Fields): Map<string, Field> {
  const groups = [...fields.values()].flatMap(({ members }) => members ?? [])
  const scalars = [fields, ...groups].flatMap((some) =>
    [...some].filter(([, { members }]) => !members),
  )
  const names = new Map(scalars.map(([, field]) => [field.path, field]))
  return groups.length === 1 ? new Map([...names, ...scalars]) : names
}

function rowOf(cells: Cell[], columns: Field[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  const groups: Record<string, Record<string, unknown>> = {}
  for (const [index, field] of columns.entries()) {
    const [name = '', member] = field.path.split('.')
    const value = jsonValue(cells[index] ?? null, field)
    if (member === undefined) row[name] = value
    else groups[name] = { ...groups[name], [member]: value }
  }
  for (const [name, members] of Object.entries(groups))
    row[name] = Object.values(members).some((value) => value !== null && value !== '')
      ? members
      : null
  return row
}

/** Returns the value that JSON would have. A text may be empty; another field is null then. */
function jsonValue(cell: Cell, { rule }: Field): unknown {
  if (cell === null || (cell === '' && rule('') !== undefined)) return null
  if (cell.startsWith(NUMBER)) return NUMBER + cell
  // Spreadsheets write TRUE.
  const isBoolean = /^(true|false)$/i.test(cell) && rule(true) === undefined
  return isBoolean ? cell.toLowerCase() === 'true' : cell
}
