import type { TObject, TSchema } from '@sinclair/typebox'
import { type FlatField, flatFields } from './flat.ts'

/**
 * Turns the bytes of one row, as RawRows keeps them, into the bytes of one JSON object.
 * @returns the position behind the object, in `target`
 */
export interface RowWriter {
  write(row: Buffer, start: number, target: Buffer, at: number): number
  /** How many bytes a row of `length` bytes can become at most. */
  longest(length: number): number
  /** About how many bytes these rows become; more only where text needs many escapes. */
  usual(rows: { count: number; byteLength: number }): number
}

/** How a value's text becomes JSON: digits as they are, text in quotes, booleans from `t` and `f`. */
const BARE = 0
const QUOTED = 1
const ESCAPED = 2
const BOOLEAN = 3

interface Cell {
  kind: number
  /** What precedes the value, its opening quote included, such as `,"currency":"`. */
  before: Buffer
  /** What stands there instead when the value is null. */
  absent: Buffer
  /** Whether the value ends an inner object. */
  closes: boolean
}

/**
 * Compiles the writer of an item from its response schema: the field names of the reply are copied from
 * here, the values from the row, in one pass. A decimal's digits are thus the very bytes that
 * PostgreSQL sent (contract 11).
 * @param skipped how many columns of the row come before those of the item
 */
export function compileRowWriter(item: TObject, skipped: number): RowWriter {
  const cells = flatFields(item).map(cellOf)
  const constant = cells.reduce(
    (sum, { before, absent }) => sum + Math.max(before.length + 2, absent.length),
    1,
  )
  return {
    write: (row, start, target, at) => writeRow(cells, skipped, row, start, target, at),
    // A control character of one byte becomes an escape of six.
    longest: (length) => constant + 6 * length,
    usual: ({ count, byteLength }) => count * (constant + 1) + byteLength,
  }
}

function cellOf({ name, schema, group }: FlatField, index: number): Cell {
  const comma = index === 0 ? '{' : ','
  const own = JSON.stringify(group ? name.slice(group.name.length + 1) : name)
  const opening = group?.first ? `${JSON.stringify(group.name)}:{` : ''
  const nothing = group ? JSON.stringify(group.name) : own
  const kind = kindOf(schema)
  const quote = kind === QUOTED || kind === ESCAPED ? '"' : ''
  return {
    kind,
    before: Buffer.from(`${comma}${opening}${own}:${quote}`),
    absent: Buffer.from(group && !group.first ? '' : `${comma}${nothing}:null`),
    closes: group?.last ?? false,
  }
}

function kindOf(schema: TSchema): number {
  const types: unknown[] = [schema.type].flat()
  if (types.includes('number')) return BARE
  if (types.includes('boolean')) return BOOLEAN
  const plain = schema.format === 'uuid' || schema.format === 'date' || schema.enum !== undefined
  return plain ? QUOTED : ESCAPED
}

const QUOTE = 0x22
const BRACE = 0x7d
const LETTER_T = 0x74

function writeRow(
  cells: Cell[],
  skipped: number,
  row: Buffer,
  start: number,
  target: Buffer,
  begin: number,
): number {
  // Behind the length of the row and its number of fields.
  let from = start + 6
  let at = begin
  for (let left = skipped; left > 0; left -= 1) from += 4 + Math.max(0, row.readInt32BE(from))
  for (const cell of cells) {
    const length = readInt32(row, from)
    from += 4
    if (length < 0) {
      target.set(cell.absent, at)
      at += cell.absent.length
      continue
    }
    target.set(cell.before, at)
    at = writeValue(cell.kind, row, from, from + length, target, at + cell.before.length)
    if (cell.closes) target[at++] = BRACE
    from += length
  }
  target[at] = BRACE
  return at + 1
}

function writeValue(
  kind: number,
  row: Buffer,
  from: number,
  end: number,
  target: Buffer,
  begin: number,
): number {
  if (kind === BARE) return copy(row, from, end, target, begin)
  if (kind === BOOLEAN) {
    const word = row[from] === LETTER_T ? TRUE : FALSE
    target.set(word, begin)
    return begin + word.length
  }
  const at = (kind === QUOTED ? copy : escape)(row, from, end, target, begin)
  target[at] = QUOTE
  return at + 1
}

const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')

/** Up to some thirty bytes, which most values have, a loop beats a call into the runtime. */
function copy(source: Buffer, from: number, end: number, target: Buffer, begin: number): number {
  if (end - from > 30) return begin + source.copy(target, begin, from, end)
  let at = begin
  for (let i = from; i < end; i += 1) {
    target[at] = source[i] as number
    at += 1
  }
  return at
}

/** What follows the backslash, for the bytes that JSON does not take as they are; 0 for the others. */
const ESCAPES = new Uint8Array(256)
for (let byte = 0; byte < 0x20; byte += 1) ESCAPES[byte] = 0x75
for (const [byte, letter] of ['""', '\\\\', '\bb', '\ff', '\nn', '\rr', '\tt']) {
  ESCAPES[(byte as string).charCodeAt(0)] = (letter as string).charCodeAt(0)
}

const HEX = Buffer.from('0123456789abcdef')

function escape(source: Buffer, from: number, end: number, target: Buffer, begin: number): number {
  let at = begin
  for (let i = from; i < end; i += 1) {
    const byte = source[i] as number
    const letter = ESCAPES[byte] as number
    if (letter === 0) {
      target[at] = byte
      at += 1
      continue
    }
    target[at] = 0x5c
    target[at + 1] = letter
    at += 2
    if (letter === 0x75) {
      target[at] = 0x30
      target[at + 1] = 0x30
      target[at + 2] = HEX[byte >> 4] as number
      target[at + 3] = HEX[byte & 15] as number
      at += 4
    }
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
