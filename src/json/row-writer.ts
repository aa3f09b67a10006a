import type { TObject, TSchema } from '@sinclair/typebox'
import { type Column, columnsOf } from '../schemas/fields.ts'
import type { Format, List } from '../schemas/list.ts'

/** Writes rows of RawRows in one format, such as JSON objects. */
export interface RowWriter {
  /** Output before the first row: the names of the fields in CSV. */
  header: string
  /** True if a comma separates the rows. */
  commas: boolean
  /** Returns the position after the row in `target`. */
  write(block: DataView, start: number, target: DataView, at: number): number
  /** Bytes of `target` that a row needs besides its values. A value needs up to six times its bytes, if all are escaped. */
  overhead: number
}

/** Maximum number of templates. Each set of null columns has one; real data has a few dozen. */
const MAX_TEMPLATES = 1_000

/** Compiles a writer for each format. */
export function rowWriters({ item, exact }: List): Record<Format, RowWriter> {
  return {
    json: compileRowWriter(item, jsonTemplate('}'), { commas: true }),
    exactJson: compileRowWriter(exact.item, jsonTemplate('}'), { commas: true }),
    ndjson: compileRowWriter(item, jsonTemplate('}\n')),
    exactNdjson: compileRowWriter(exact.item, jsonTemplate('}\n')),
    csv: compileRowWriter(item, csvTemplate, { header: csvHeader(item) }),
  }
}

/** Compiles the writer of an item. Copying is most of the cost, so it merges constants and copies bytes as words. */
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
  // Most rows have the same nulls as the row before.
  let lastNulls = 0
  let template = templateOf(columns, () => false)
  const constants = [...template.before, template.after].reduce(
    (sum, { length }) => sum + length,
    0,
  )

  function selectTemplate(nulls: number): void {
    template =
      templates.get(nulls) ?? templateOf(columns, (column) => (nulls & (1 << column)) !== 0)
    if (templates.size >= MAX_TEMPLATES) templates.clear()
    templates.set(nulls, template)
    lastNulls = nulls
  }

  /** Finds the values of the item, which are the last ones of the row. Returns the null columns, one bit for each. */
  function locate(block: DataView, start: number): number {
    // Skips the length of the row (4 bytes) and its field count (2 bytes).
    let at = start + 6
    for (let left = block.getInt16(start + 4) - columns.length; left > 0; left -= 1)
      at += 4 + Math.max(0, block.getInt32(at))
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

  return {
    header,
    commas,
    overhead: constants + WORD * columns.length,
    write: (block, start, target, begin) => {
      const nulls = locate(block, start)
      if (nulls !== lastNulls) selectTemplate(nulls)
      const { before, columns, writers, after } = template
      let at = begin
      for (let value = 0; value < columns.length; value += 1) {
        at = writeConstant(before[value] as Constant, target, at)
        const column = columns[value] as number
        const write = writers[value] as WriteBytes
        const [from, end] = [starts[column] as number, ends[column] as number]
        // V8 compiles a call of a known function into the loop.
        at =
          write === copy ? copy(block, from, end, target, at) : write(block, from, end, target, at)
      }
      return writeConstant(after, target, at)
    },
  }
}

/** Constant output of all rows with nulls in the same columns, split at the values. */
interface Template {
  /** Output before each value, such as `","amount":`, with the nulls in between. */
  before: Constant[]
  columns: number[]
  writers: WriteBytes[]
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
    const template: Template = { before: [], columns: [], writers: [], after: constant('') }
    let text = ''
    for (const [column, { path, schema, group }] of columns.entries()) {
      const comma = column === 0 ? '{' : ','
      const member = JSON.stringify(group ? path.slice(group.name.length + 1) : path)
      if (isNull(column)) {
        // The database has null in all members of an object or in none.
        if (group === undefined) text += `${comma}${member}:null`
        else if (group.first) text += `${comma}${JSON.stringify(group.name)}:null`
        continue
      }
      const opening = group?.first ? `${JSON.stringify(group.name)}:{` : ''
      const quote = isText(schema) ? '"' : ''
      template.before.push(constant(`${text}${comma}${opening}${member}:${quote}`))
      template.columns.push(column)
      template.writers.push(writerOf(schema))
      text = `${quote}${group?.last ? '}' : ''}`
    }
    template.after = constant(`${text}${end}`)
    return template
  }

/** RFC 4180. Null is an empty field. Text is in quotes, so an empty text is not null. */
const csvTemplate: TemplateOf = (columns, isNull) => {
  const template: Template = { before: [], columns: [], writers: [], after: constant('') }
  let text = ''
  for (const [column, { schema }] of columns.entries()) {
    if (column > 0) text += ','
    if (isNull(column)) continue
    const write = writerOf(schema)
    const quote = write === writeEscaped ? '"' : ''
    template.before.push(constant(text + quote))
    template.columns.push(column)
    template.writers.push(write === writeEscaped ? writeDoubled : write)
    text = quote
  }
  template.after = constant(`${text}\r\n`)
  return template
}

function csvHeader(item: TObject): string {
  const names = columnsOf(item).map(({ path }) => path.replace('retentionDetail.', ''))
  return `${names.join(',')}\r\n`
}

const typesOf = (schema: TSchema): unknown[] => [schema.type].flat()

const isText = (schema: TSchema): boolean => typesOf(schema).includes('string')

const PLAIN_FORMATS = ['uuid', 'date', 'decimal']

function writerOf(schema: TSchema): WriteBytes {
  if (typesOf(schema).includes('boolean')) return writeBoolean
  // These formats and the values of closed lists need no escapes.
  const plain = PLAIN_FORMATS.includes(schema.format) || schema.enum !== undefined
  return isText(schema) && !plain ? writeEscaped : copy
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

/** Copies a value as words: most are too short for Buffer.copy(). The next output replaces the bytes after it. */
const copy: WriteBytes = (source, from, end, target, begin) => {
  const shift = begin - from
  if (end + WORD <= source.byteLength) {
    for (let i = from; i < end; i += WORD) {
      target.setBigInt64(i + shift, source.getBigInt64(i, true), true)
    }
  } else for (let i = from; i < end; i += 1) target.setUint8(i + shift, source.getUint8(i))
  return end + shift
}

/** Escapes text for JSON, four bytes at once. For bytes below n, `(bytes - n) & ~bytes` has the highest bit. */
const writeEscaped: WriteBytes = (source, from, end, target, begin) => {
  let at = begin
  for (let i = from; i < end; ) {
    if (i + 4 <= end) {
      const bytes = source.getInt32(i, true)
      const quote = bytes ^ 0x22222222
      const backslash = bytes ^ 0x5c5c5c5c
      const found =
        ((bytes - 0x20202020) & ~bytes) |
        ((quote - 0x01010101) & ~quote) |
        ((backslash - 0x01010101) & ~backslash)
      if ((found & 0x80808080) === 0) {
        target.setInt32(at, bytes, true)
        i += 4
        at += 4
        continue
      }
    }
    const byte = source.getUint8(i)
    i += 1
    if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) {
      target.setUint8(at, byte)
      at += 1
    } else at = writeConstant(ESCAPES[byte] as Constant, target, at)
  }
  return at
}

/** PostgreSQL sends `t` and `f`. */
const writeBoolean: WriteBytes = (source, from, _end, target, begin) =>
  writeConstant(source.getUint8(from) === LETTER_T ? TRUE : FALSE, target, begin)

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
