import { pipeline, Readable } from 'node:stream'
import { CsvError, type Options, parse } from 'csv-parse'
import { OperatorError } from '../../operator-error.ts'
import { ImportRejected, SHOWN_PROBLEMS } from '../errors.ts'
import { escaped, pluralize } from '../output.ts'
import { CR_ALONE, type Value, visible } from './json-scanner.ts'
import type { Field, Fields } from './row-types.ts'
import { suggestion } from './rules.ts'
import { MAXIMUM_LINE_BYTES, NOT_UTF8, type Source } from './source.ts'

const BLOCK_CHARACTERS = 64 * 1024

type Cell = string | null
/** A record, and the line on which it starts. */
type CsvRecord = { line: number; cells: Cell[] }
/** Writes the name and value of a member as JSON. */
type Member = (cells: Cell[]) => string

/**
 * Writes CSV (RFC 4180) as newline-delimited JSON. A row is on the line where its record starts, and
 * has the members that the header names. Members of an object are named `retentionFrom` or, where
 * other objects have the name too, `marketer.name`.
 * @throws ImportRejected for the first record that is not CSV, or a header with an unknown field
 * @throws OperatorError if the source is not UTF-8
 */
export async function* csvAsJson(source: Source, fields: Fields): AsyncGenerator<Buffer> {
  let members: Member[] = []
  let written = 0
  let text = ''
  const onHeader = (header: Cell[]) => {
    members = membersOf(header, fields, source.name)
  }
  for await (const { line, cells } of recordsOf(source, onHeader)) {
    // Spreadsheets write a blank row as commas, some with a pair of quotes for each field.
    if (cells.every((cell) => !cell)) continue
    text += `${'\n'.repeat(line - 1 - written)}{${members.map((member) => member(cells)).join()}}`
    written = line - 1
    if (text.length < BLOCK_CHARACTERS) continue
    yield Buffer.from(text)
    text = ''
  }
  yield Buffer.from(text)
}

/** Yields the records below the header. First calls `onHeader`, which explains a header that is wrong. */
async function* recordsOf(
  source: Source,
  onHeader: (header: Cell[]) => void,
): AsyncGenerator<CsvRecord> {
  let breaksInCells = 0
  let names = 0
  const options: Options<unknown> = {
    record_delimiter: ['\r\n', '\n'],
    skip_empty_lines: true,
    max_record_size: MAXIMUM_LINE_BYTES,
    // As in PostgreSQL: "" is an empty text, and no characters are null.
    cast: (text, { quoting }) => (text === '' && !quoting ? null : text),
    on_record: (record, { records, empty_lines }) => {
      const cells = record as Cell[]
      const isHeader = names === 0
      const line = records + empty_lines + breaksInCells
      if (isHeader) onHeader(cells)
      names ||= cells.length
      for (const cell of cells) breaksInCells += (cell?.split('\n').length ?? 1) - 1
      return isHeader ? null : { line, cells }
    },
  }
  const parser = pipeline(Readable.from(decode(source)), parse(options as Options), () => {})
  try {
    yield* parser
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const { code, message, record } = error
    const line = Number(error.records) + Number(error.empty_lines) + breaksInCells + 1
    const explanation =
      code === 'CSV_RECORD_INCONSISTENT_FIELDS_LENGTH'
        ? `the header has ${pluralize(names, 'field')}, and this record ${(record as Cell[]).length}`
        : (REASONS[code] ?? message)
    const reason = `not valid CSV: ${explanation}`
    throw new ImportRejected([{ file: source.name, line, reason }], 1)
  }
}

async function* decode({ name, chunks }: Source): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true })
    yield decoder.decode()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new OperatorError(`${escaped(name)} is ${NOT_UTF8}.`)
  }
}

/** @throws ImportRejected if the header has unknown or repeated names, or is missing */
function membersOf(header: Cell[], fields: Fields, file: string): Member[] {
  const names = columnNames(fields)
  const reject = (reason: string) => new ImportRejected([{ file, line: 1, reason }], 1)
  if (header.some((cell) => cell?.includes('\r'))) throw reject(CR_ALONE)
  if (!header.some((cell) => names.has(cell ?? '')))
    throw reject(`the header must have names of fields, separated by commas: ${example(fields)}`)
  // `retentionFrom` and `retentionDetail.retentionFrom` name the same field.
  const meanings = header.map((cell) => names.get(cell ?? '') ?? cell)
  const problems = header.flatMap((cell, index) => {
    const name = cell ?? ''
    const field = visible(name.slice(0, 60))
    const problem = (reason: string) => [{ file, line: 1, field, reason }]
    if (name === '')
      return [{ file, line: 1, reason: `field ${index + 1} of the header has no name` }]
    if (meanings.indexOf(names.get(name) ?? cell) < index) return problem('the field appears twice')
    if (names.has(name)) return []
    return problem(`there is no such field${suggestion(name, names.keys())}`)
  })
  if (problems.length > 0)
    throw new ImportRejected(problems.slice(0, SHOWN_PROBLEMS), problems.length)
  const columns = new Map(header.map((cell, index) => [names.get(cell ?? ''), index]))
  return fields.inOrder.flatMap((field) => memberOf(field, columns) ?? [])
}

function memberOf(field: Field, columns: Map<Field | undefined, number>): Member | undefined {
  const name = `${field.quotedName}:`
  const column = columns.get(field)
  if (column !== undefined) return (cells) => name + jsonOf(cells[column] ?? null, field)
  const parts = field.members?.inOrder.filter((part) => columns.has(part)) ?? []
  if (parts.length === 0) return undefined
  const members = parts.map((part) => memberOf(part, columns))
  const isNull = (cells: Cell[]) => parts.every((part) => !cells[columns.get(part) ?? 0])
  return (cells) =>
    name + (isNull(cells) ? 'null' : `{${members.map((member) => member?.(cells)).join()}}`)
}

const example = ({ inOrder }: Fields) =>
  inOrder
    .map(({ path }) => path)
    .slice(0, 2)
    .join()

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

const LITERAL = /^(true|false|-?(0|[1-9]\d*)(\.\d+)?)$/

const EMPTY: Value = {
  type: 'string',
  bytes: Buffer.alloc(0),
  start: 0,
  end: 0,
  text: undefined,
}

function jsonOf(cell: Cell, { isText, rule }: Field): string {
  if (cell === null || (cell === '' && !rule.accepts(EMPTY))) return 'null'
  // Spreadsheets write TRUE.
  const literal = cell.toLowerCase()
  return !isText && LITERAL.test(literal) ? literal : JSON.stringify(cell)
}

const REASONS: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'a quoted field has no closing quote',
  CSV_INVALID_CLOSING_QUOTE: 'a comma or a line break is expected after a closing quote',
  INVALID_OPENING_QUOTE: 'a field with a quote must be in quotes, and the quote is written twice',
  CSV_MAX_RECORD_SIZE: `the record is longer than ${MAXIMUM_LINE_BYTES} bytes`,
}
