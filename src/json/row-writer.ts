import type { TObject, TSchema } from '@sinclair/typebox'
import { exactDecimals } from '../schemas/fields.ts'
import type { Format } from '../schemas/list.ts'

interface Column {
  name: string
  schema: TSchema
  group?: { name: string; first: boolean; last: boolean }
}

export function columnsOf(item: TObject): Column[] {
  return Object.entries(item.properties).flatMap(([name, schema]): Column[] => {
    if (schema.properties === undefined) return [{ name, schema }]
    const members = Object.entries<TSchema>(schema.properties)
    return members.map(([member, memberSchema], index) => ({
      name: `${name}.${member}`,
      schema: memberSchema,
      group: { name, first: index === 0, last: index === members.length - 1 },
    }))
  })
}

/** Writes rows of RawRows in one format, such as JSON objects. */
export interface RowWriter {
  /** Output before the first row: the names of the fields in CSV. */
  header: string
  /** True if a comma separates the rows. */
  commas: boolean
  /** Returns the position after the row in `target`. */
  write(block: DataView, start: number, target: DataView, at: number): number
  /** Upper bound for the bytes of `target` that a row of `length` bytes needs. */
  longest(length: number): number
  /** Estimates the output of these rows, in bytes. Text with many escapes needs more. */
  estimate(rows: { count: number; byteLength: number }): number
}

/** Maximum number of templates. Each set of null columns has one; real data has a few dozen. */
const MAX_TEMPLATES = 1_000

/** Compiles a writer for each format. */
export function rowWriters(item: TObject): Record<Format, RowWriter> {
  const exact = exactDecimals(item)
  return {
    json: compileRowWriter(item, jsonTemplate('}'), { commas: true }),
    exactJson: compileRowWriter(exact, jsonTemplate('}'), { commas: true }),
    ndjson: compileRowWriter(item, jsonTemplate('}\n')),
    exactNdjson: compileRowWriter(exact, jsonTemplate('}\n')),
    csv: compileRowWriter(item, csvTemplate, { header: csvHeader(item) }),
  }
}

/**
 * Compiles the writer of an item from its response schema. The digits of decimals are the bytes from PostgreSQL
 * (contract 11). Copying is most of the cost, so constant parts around nulls are merged, and bytes are copied as words.
 */
function compileRowWriter(
  item: TObject,
  templateOf: TemplateOf,
  { header = '', commas = false } = {},
): RowWriter {
  const columns = columnsOf(item)
  if (columns.length > 31) throw new Error('the null columns of a row no longer fit in an integer')
  const templates = new Map<number, Template>()
  const starts = new Int32Array(columns.length)
  const ends = new Int32Array(columns.length)
  let lastNulls = 0
  let last = templateOf(columns, () => false)

  function templateFor(nulls: number): Template {
    // Most rows have the same nulls as the row before.
    if (nulls === lastNulls) return last
    const template =
      templates.get(nulls) ?? templateOf(columns, (column) => (nulls & (1 << column)) !== 0)
    if (templates.size >= MAX_TEMPLATES) templates.clear()
    templates.set(nulls, template)
    lastNulls = nulls
    last = template
    return template
  }

  const overhead = constantLength(last) + 8 * columns.length
  return {
    header,
    commas,
    write: (block, start, target, at) => {
      const nulls = locate(block, start, starts, ends)
      return fill(templateFor(nulls), block, starts, ends, target, at)
    },
    // A control character of one byte becomes an escape of six. The lengths of the values in the row leave
    // room for the padding of the last word.
    longest: (length) => overhead + 6 * length,
    estimate: ({ count, byteLength }) => count * overhead + byteLength,
  }
}

/** Conversions of a value: copied, escaped for JSON, `t` and `f` as a boolean, or quotes doubled for CSV. */
const COPIED = 0
const ESCAPED = 1
const BOOLEAN = 2
const DOUBLED = 3

/** Constant output of all rows with nulls in the same columns, split at the values. */
interface Template {
  /** Output before each value, such as `","amount":`, with the nulls in between. */
  before: Constant[]
  columns: number[]
  conversions: number[]
  after: Constant
}

interface Constant {
  length: number
  words: DataView
}

const WORD = 8

function constant(text: string): Constant {
  const bytes = Buffer.from(text)
  const padded = new Uint8Array(Math.ceil(bytes.length / WORD) * WORD)
  padded.set(bytes)
  return { length: bytes.length, words: new DataView(padded.buffer) }
}

type TemplateOf = (columns: Column[], isNull: (column: number) => boolean) => Template

const jsonTemplate =
  (end: string): TemplateOf =>
  (columns, isNull) => {
    const template: Template = { before: [], columns: [], conversions: [], after: constant('') }
    let text = ''
    for (const [column, { name, schema, group }] of columns.entries()) {
      const comma = column === 0 ? '{' : ','
      const member = JSON.stringify(group ? name.slice(group.name.length + 1) : name)
      if (isNull(column)) {
        // The database has null in all members of an object or in none (contract 10).
        if (group === undefined) text += `${comma}${member}:null`
        else if (group.first) text += `${comma}${JSON.stringify(group.name)}:null`
        continue
      }
      const opening = group?.first ? `${JSON.stringify(group.name)}:{` : ''
      const quote = isText(schema) ? '"' : ''
      template.before.push(constant(`${text}${comma}${opening}${member}:${quote}`))
      template.columns.push(column)
      template.conversions.push(conversionOf(schema))
      text = `${quote}${group?.last ? '}' : ''}`
    }
    template.after = constant(`${text}${end}`)
    return template
  }

/** RFC 4180. Null is an empty field. Text is in quotes, so an empty text is not null. */
const csvTemplate: TemplateOf = (columns, isNull) => {
  const template: Template = { before: [], columns: [], conversions: [], after: constant('') }
  let text = ''
  for (const [column, { schema }] of columns.entries()) {
    if (column > 0) text += ','
    if (isNull(column)) continue
    const conversion = conversionOf(schema)
    const quote = conversion === ESCAPED ? '"' : ''
    template.before.push(constant(text + quote))
    template.columns.push(column)
    template.conversions.push(conversion === ESCAPED ? DOUBLED : conversion)
    text = quote
  }
  template.after = constant(`${text}\r\n`)
  return template
}

function csvHeader(item: TObject): string {
  const names = columnsOf(item).map(({ name }) => name.replace('retentionDetail.', ''))
  return `${names.join(',')}\r\n`
}

const typesOf = (schema: TSchema): unknown[] => [schema.type].flat()

const isText = (schema: TSchema): boolean => typesOf(schema).includes('string')

const PLAIN_FORMATS = ['uuid', 'date', 'decimal']

function conversionOf(schema: TSchema): number {
  if (typesOf(schema).includes('boolean')) return BOOLEAN
  // These formats and the values of closed lists need no escapes.
  const plain = PLAIN_FORMATS.includes(schema.format) || schema.enum !== undefined
  return isText(schema) && !plain ? ESCAPED : COPIED
}

function constantLength({ before, after }: Template): number {
  return before.reduce((sum, part) => sum + part.length, after.length)
}

/** Finds the values of the item, which are the last ones of the row. Returns the null columns, one bit for each. */
function locate(block: DataView, start: number, starts: Int32Array, ends: Int32Array): number {
  // Skips the length of the row (4 bytes) and its field count (2 bytes).
  let at = start + 6
  const skipped = block.getInt16(start + 4) - starts.length
  for (let left = skipped; left > 0; left -= 1) at += 4 + Math.max(0, block.getInt32(at))
  let nulls = 0
  for (let column = 0; column < starts.length; column += 1) {
    const length = block.getInt32(at)
    at += 4
    starts[column] = at
    if (length < 0) nulls |= 1 << column
    else at += length
    ends[column] = at
  }
  return nulls
}

function fill(
  { before, columns, conversions, after }: Template,
  block: DataView,
  starts: Int32Array,
  ends: Int32Array,
  target: DataView,
  begin: number,
): number {
  let at = begin
  for (let value = 0; value < columns.length; value += 1) {
    at = writeConstant(before[value] as Constant, target, at)
    const column = columns[value] as number
    const from = starts[column] as number
    const end = ends[column] as number
    const conversion = conversions[value] as number
    if (conversion === COPIED) at = copy(block, from, end, target, at)
    else if (conversion === ESCAPED) at = writeEscaped(block, from, end, target, at)
    else if (conversion === BOOLEAN) {
      at = writeConstant(block.getUint8(from) === LETTER_T ? TRUE : FALSE, target, at)
    } else at = writeDoubled(block, from, end, target, at)
  }
  return writeConstant(after, target, at)
}

const LETTER_T = 0x74
const QUOTE = 0x22
const BACKSLASH = 0x5c
const TRUE = constant('true')
const FALSE = constant('false')
/** JSON escapes of control characters, the quote and the backslash, by byte. */
const ESCAPES = Array.from({ length: BACKSLASH + 1 }, (_, byte) =>
  constant(JSON.stringify(String.fromCharCode(byte)).slice(1, -1)),
)

/** The padding of the last word is replaced by the next output. */
function writeConstant({ length, words }: Constant, target: DataView, at: number): number {
  for (let i = 0; i < length; i += WORD) {
    target.setBigInt64(at + i, words.getBigInt64(i, true), true)
  }
  return at + length
}

/** Writes the bytes of a value at `begin`. Returns the position after them. */
type WriteBytes = (
  source: DataView,
  from: number,
  end: number,
  target: DataView,
  begin: number,
) => number

/**
 * Copies a value. Its last word can contain bytes after the value, which the next output replaces. V8
 * keeps these integers in registers. Calls of Buffer.copy() take longer, because most values are short.
 */
const copy: WriteBytes = (source, from, end, target, begin) => {
  const shift = begin - from
  if (end + WORD <= source.byteLength) {
    for (let i = from; i < end; i += WORD) {
      target.setBigInt64(i + shift, source.getBigInt64(i, true), true)
    }
  } else for (let i = from; i < end; i += 1) target.setUint8(i + shift, source.getUint8(i))
  return end + shift
}

const writeEscaped: WriteBytes = (source, from, end, target, begin) => {
  let at = begin
  let i = from
  for (; i + 4 <= end; i += 4) {
    const bytes = source.getInt32(i, true)
    if (hasEscape(bytes)) at = escapeBytes(source, i, i + 4, target, at)
    else {
      target.setInt32(at, bytes, true)
      at += 4
    }
  }
  return escapeBytes(source, i, end, target, at)
}

/**
 * True if one of four bytes needs an escape. For bytes below n, `(bytes - n) & ~bytes` has the highest
 * bit. An exclusive or turns the byte that is searched for into 0. A borrow can also mark the byte after it.
 */
function hasEscape(bytes: number): boolean {
  const quote = bytes ^ 0x22222222
  const backslash = bytes ^ 0x5c5c5c5c
  const found =
    ((bytes - 0x20202020) & ~bytes) |
    ((quote - 0x01010101) & ~quote) |
    ((backslash - 0x01010101) & ~backslash)
  return (found & 0x80808080) !== 0
}

const escapeBytes: WriteBytes = (source, from, end, target, begin) => {
  let at = begin
  for (let i = from; i < end; i += 1) {
    const byte = source.getUint8(i)
    if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) {
      target.setUint8(at, byte)
      at += 1
    } else at = writeConstant(ESCAPES[byte] as Constant, target, at)
  }
  return at
}

const writeDoubled: WriteBytes = (source, from, end, target, begin) => {
  let at = begin
  for (let i = from; i < end; i += 1) {
    const byte = source.getUint8(i)
    if (byte === QUOTE) {
      target.setUint8(at, QUOTE)
      at += 1
    }
    target.setUint8(at, byte)
    at += 1
  }
  return at
}
