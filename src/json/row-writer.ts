import type { TObject, TSchema } from '@sinclair/typebox'

/** A column of a row, and its place in the item. */
interface Column {
  name: string
  schema: TSchema
  /** The object that contains this column, if any. */
  group?: { name: string; first: boolean; last: boolean }
}

/** Lists the columns of an item in the order of the response. */
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

/** Writes a row of RawRows in one format, such as a JSON object. */
export interface RowWriter {
  /** @returns the position after the row in `target` */
  write(row: Buffer, start: number, target: Buffer, at: number): number
  /** Upper bound for the output of a row of `length` bytes. */
  longest(length: number): number
  /** Estimates the output of these rows, in bytes. Text with many escapes needs more. */
  estimate(rows: { count: number; byteLength: number }): number
}

/** Maximum number of templates. Each set of null columns has one; real data has a few dozen. */
const MAX_TEMPLATES = 1_000

/**
 * Compiles the writer of an item from its response schema. It writes field names from the schema and
 * values from the row in one pass. The digits of decimals are the bytes from PostgreSQL (contract 11).
 * Copying is most of the cost, so constant parts around nulls are merged.
 * @param skipped columns of the row before those of the item
 * @param templateOf format of a row: JSON by default
 */
export function compileRowWriter(
  item: TObject,
  skipped: number,
  templateOf: TemplateOf = jsonTemplate,
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

  const constant = constantLength(last) + 8 * columns.length
  return {
    write: (row, start, target, at) => {
      const nulls = locate(row, start, skipped, starts, ends)
      return fill(templateFor(nulls), row, starts, ends, target, at)
    },
    // A control character of one byte becomes an escape of six.
    longest: (length) => constant + 6 * length,
    estimate: ({ count, byteLength }) => count * constant + byteLength,
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
  before: Buffer[]
  /** Column and conversion of each value. */
  columns: number[]
  conversions: number[]
  /** Output after the last value. */
  after: Buffer
}

type TemplateOf = (columns: Column[], isNull: (column: number) => boolean) => Template

const jsonTemplate: TemplateOf = (columns, isNull) => {
  const template: Template = { before: [], columns: [], conversions: [], after: Buffer.of() }
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
    template.before.push(Buffer.from(`${text}${comma}${opening}${member}:${quote}`))
    template.columns.push(column)
    template.conversions.push(conversionOf(schema))
    text = `${quote}${group?.last ? '}' : ''}`
  }
  template.after = Buffer.from(`${text}}`)
  return template
}

/** One JSON object a line (NDJSON). */
export const lineTemplate: TemplateOf = (columns, isNull) => {
  const template = jsonTemplate(columns, isNull)
  return { ...template, after: Buffer.from(`${template.after}\n`) }
}

/** RFC 4180. Null is an empty field. Text is in quotes, so an empty text is not null. */
export const csvTemplate: TemplateOf = (columns, isNull) => {
  const template: Template = { before: [], columns: [], conversions: [], after: Buffer.of() }
  let text = ''
  for (const [column, { schema }] of columns.entries()) {
    if (column > 0) text += ','
    if (isNull(column)) continue
    const conversion = conversionOf(schema)
    const quote = conversion === ESCAPED ? '"' : ''
    template.before.push(Buffer.from(text + quote))
    template.columns.push(column)
    template.conversions.push(conversion === ESCAPED ? DOUBLED : conversion)
    text = quote
  }
  template.after = Buffer.from(`${text}\r\n`)
  return template
}

/** Names of the columns, as the first line of CSV. */
export function csvHeader(item: TObject): string {
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

/** Finds the start and end of each value. Returns the null columns, one bit for each. */
function locate(
  row: Buffer,
  start: number,
  skipped: number,
  starts: Int32Array,
  ends: Int32Array,
): number {
  // Skips the length of the row (4 bytes) and its field count (2 bytes).
  let at = start + 6
  for (let left = skipped; left > 0; left -= 1) at += 4 + Math.max(0, readInt32(row, at))
  let nulls = 0
  for (let column = 0; column < starts.length; column += 1) {
    const length = readInt32(row, at)
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
  row: Buffer,
  starts: Int32Array,
  ends: Int32Array,
  target: Buffer,
  begin: number,
): number {
  let at = begin
  for (let value = 0; value < columns.length; value += 1) {
    const constant = before[value] as Buffer
    target.set(constant, at)
    at += constant.length
    const column = columns[value] as number
    const from = starts[column] as number
    const end = ends[column] as number
    const conversion = conversions[value] as number
    if (conversion === COPIED) at = copy(row, from, end, target, at)
    else if (conversion === ESCAPED) at = writeEscaped(row, from, end, target, at)
    else if (conversion === BOOLEAN) {
      at += target.write(row[from] === LETTER_T ? 'true' : 'false', at)
    } else at = writeDoubled(row, from, end, target, at)
  }
  target.set(after, at)
  return at + after.length
}

const LETTER_T = 0x74
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** JSON escapes by byte: of control characters, the quote and the backslash. */
const ESCAPES = Array.from({ length: BACKSLASH + 1 }, (_, byte) =>
  Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1)),
)

/** Copies up to 30 bytes in a loop, which is faster than a native call. Most values are shorter. */
function copy(source: Buffer, from: number, end: number, target: Buffer, begin: number): number {
  if (end - from > 30) return begin + source.copy(target, begin, from, end)
  let at = begin
  for (let i = from; i < end; i += 1) target[at++] = source[i] as number
  return at
}

function writeEscaped(
  source: Buffer,
  from: number,
  end: number,
  target: Buffer,
  begin: number,
): number {
  let at = begin
  for (let i = from; i < end; i += 1) {
    const byte = source[i] as number
    if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) target[at++] = byte
    else {
      const escaped = ESCAPES[byte] as Buffer
      for (let j = 0; j < escaped.length; j += 1) target[at++] = escaped[j] as number
    }
  }
  return at
}

function writeDoubled(
  source: Buffer,
  from: number,
  end: number,
  target: Buffer,
  begin: number,
): number {
  let at = begin
  for (let i = from; i < end; i += 1) {
    const byte = source[i] as number
    if (byte === QUOTE) target[at++] = QUOTE
    target[at++] = byte
  }
  return at
}

function readInt32(source: Buffer, at: number): number {
  return (
    ((source[at] as number) << 24) |
    ((source[at + 1] as number) << 16) |
    ((source[at + 2] as number) << 8) |
    (source[at + 3] as number)
  )
}
