import type { TObject, TSchema } from '@sinclair/typebox'
import type { FlatField } from './column-map.ts'
import { flatFields } from './column-map.ts'

/** How a value's text becomes JSON: copied, escaped, or read as `t` or `f`. */
const COPIED = 0
const ESCAPED = 1
const BOOLEAN = 2

/**
 * The JSON of every row that has nulls in the same columns: all that is the same in them, in as few
 * pieces as there are values between.
 */
export interface Template {
  /** What precedes each value, such as `","amount":`, with the nulls in between. */
  before: Buffer[]
  /** The column that each value comes from, and what becomes of it. */
  columns: number[]
  kinds: number[]
  /** What follows the last value. */
  after: Buffer
}

/** @param isNull whether the column of that number is null */
function templateOf(fields: FlatField[], isNull: (column: number) => boolean): Template {
  const template: Template = { before: [], columns: [], kinds: [], after: Buffer.of() }
  let text = ''
  for (const [column, { name, schema, group }] of fields.entries()) {
    const comma = column === 0 ? '{' : ','
    const own = JSON.stringify(group ? name.slice(group.name.length + 1) : name)
    if (isNull(column)) {
      // The members of an inner object are null together, and so is the object.
      if (group === undefined) text += `${comma}${own}:null`
      else if (group.first) text += `${comma}${JSON.stringify(group.name)}:null`
      continue
    }
    const opening = group?.first ? `${JSON.stringify(group.name)}:{` : ''
    const quote = isText(schema) ? '"' : ''
    template.before.push(Buffer.from(`${text}${comma}${opening}${own}:${quote}`))
    template.columns.push(column)
    template.kinds.push(kindOf(schema))
    text = `${quote}${group?.last ? '}' : ''}`
  }
  template.after = Buffer.from(`${text}}`)
  return template
}

const typesOf = (schema: TSchema): unknown[] => [schema.type].flat()

function isText(schema: TSchema): boolean {
  return typesOf(schema).includes('string')
}

function kindOf(schema: TSchema): number {
  if (typesOf(schema).includes('boolean')) return BOOLEAN
  // A uuid, a date or one of a closed list holds nothing that JSON would escape.
  const plain = schema.format === 'uuid' || schema.format === 'date' || schema.enum !== undefined
  return isText(schema) && !plain ? ESCAPED : COPIED
}

/** Turns the bytes of one row, as RawRows keeps them, into the bytes of one JSON object. */
export interface RowWriter {
  /** @returns the position behind the object, in `target` */
  write(row: Buffer, start: number, target: Buffer, at: number): number
  /** How many bytes a row of `length` bytes can become at most. */
  longest(length: number): number
  /** About how many bytes these rows become; more only where text needs many escapes. */
  usual(rows: { count: number; byteLength: number }): number
}

/** Sets of null columns whose templates are kept; real data has a few dozen. */
const MOST_TEMPLATES = 1_000

/**
 * Compiles the writer of an item from its response schema. The field names come from the schema, the
 * values from the row, in one pass: a decimal's digits are the very bytes that PostgreSQL sent
 * (contract 11). Constant parts are merged over runs of nulls, because copying is what costs.
 * @param skipped how many columns of the row come before those of the item
 */
export function compileRowWriter(item: TObject, skipped: number): RowWriter {
  const fields = flatFields(item)
  if (fields.length > 31) throw new Error('the null columns of a row no longer fit in an integer')
  const templates = new Map<number, Template>()
  const starts = new Int32Array(fields.length)
  const ends = new Int32Array(fields.length)

  let lastNulls = 0
  let last = templateOf(fields, () => false)

  function templateFor(nulls: number): Template {
    // Rows that follow each other are mostly alike.
    if (nulls === lastNulls) return last
    const template =
      templates.get(nulls) ?? templateOf(fields, (column) => (nulls & (1 << column)) !== 0)
    if (templates.size >= MOST_TEMPLATES) templates.clear()
    templates.set(nulls, template)
    lastNulls = nulls
    last = template
    return template
  }

  const constant = constantLength(last) + 8 * fields.length
  return {
    write: (row, start, target, at) => {
      const nulls = locate(row, start, skipped, starts, ends)
      return fill(templateFor(nulls), row, starts, ends, target, at)
    },
    // A control character of one byte becomes an escape of six.
    longest: (length) => constant + 6 * length,
    usual: ({ count, byteLength }) => count * constant + byteLength,
  }
}

function constantLength({ before, after }: Template): number {
  return before.reduce((sum, part) => sum + part.length, after.length)
}

/** Finds where each value starts and ends. Returns the columns that are null, a bit for each. */
function locate(
  row: Buffer,
  start: number,
  skipped: number,
  starts: Int32Array,
  ends: Int32Array,
): number {
  // Behind the length of the row and its number of fields.
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
  { before, columns, kinds, after }: Template,
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
    const kind = kinds[value] as number
    if (kind === COPIED) at = copy(row, from, end, target, at)
    else if (kind === BOOLEAN) at += target.write(row[from] === LETTER_T ? 'true' : 'false', at)
    else at = writeEscaped(row, from, end, target, at)
  }
  target.set(after, at)
  return at + after.length
}

const LETTER_T = 0x74
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Up to some thirty bytes, which most values have, a loop beats a call into the runtime. */
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
    else at += target.write(JSON.stringify(String.fromCharCode(byte)).slice(1, -1), at)
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
