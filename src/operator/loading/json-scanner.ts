import { escaped } from '../output.ts'

const TAB = 0x09
const LINE_BREAK = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const PLUS = 0x2b
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const UPPER_E = 0x45
const BACKSLASH = 0x5c
const LOWER_E = 0x65
export const ARRAY_END = 0x5d
export const OBJECT_END = 0x7d

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

/** Problem of a line that ends as in files of old Macintosh systems. */
export const CR_ALONE = 'a line must end with LF or CRLF, not with CR alone'

/** The line is not JSON: jsonProblem() explains it. */
export class NotJson extends Error {}

/** The scanner cannot read on after an object or array that is not expected. */
export class UnexpectedValue extends Error {}

export function requireScalar({ type }: Value): void {
  if (type === 'object' || type === 'array') throw new UnexpectedValue()
}

/** Explains why a line is not JSON. V8 names the position from 0. */
export function jsonProblem(line: Buffer): string {
  const text = line.toString().replace(/\r?\n$/, '')
  if (text.includes('\r')) return CR_ALONE
  try {
    return `unexpected ${typeof JSON.parse(text)}`
  } catch (error) {
    return visible((error as SyntaxError).message.replace(/ \(line \d+ column \d+\)$/, ''))
  }
}

export interface Value {
  type: 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'
  bytes: Buffer
  /** Range in `bytes`: a string without its quotes; of an object or array, the opening bracket. */
  start: number
  end: number
  /** Set for a string with escapes and a number with an exponent. */
  text: string | undefined
}

export function textOf({ text, bytes, start, end }: Value): string {
  return text ?? bytes.toString('utf8', start, end)
}

export function describe(value: Value): string {
  if (value.type === 'object' || value.type === 'array') return `an ${value.type}`
  const text = textOf(value)
  const short = text.length > 40 ? `${text.slice(0, 40)}…` : text
  return value.type === 'string' ? visible(JSON.stringify(short)) : short
}

/** Escapes all characters that a reader cannot see, except the space. */
export function visible(text: string): string {
  return escaped(text, INVISIBLE)
}

const INVISIBLE = /(?! )[\p{C}\p{Z}]/gu

const WORDS: [Buffer, Value['type']][] = [
  [Buffer.from('null'), 'null'],
  [Buffer.from('true'), 'boolean'],
  [Buffer.from('false'), 'boolean'],
  [Buffer.from('{'), 'object'],
  [Buffer.from('['), 'array'],
]

/**
 * Reads a line of JSON (RFC 8259) token by token, without creating strings. JSON.parse rounds numbers
 * and hides duplicate members. A library that does neither (lossless-json) reached 0.6 of the speed.
 * Every method except `start` and `atEnd` throws NotJson.
 */
export class JsonScanner {
  /** The last value. The scanner reuses this object. */
  readonly value: Value = {
    type: 'null',
    bytes: Buffer.alloc(0),
    start: 0,
    end: 0,
    text: undefined,
  }
  #bytes: Buffer = Buffer.alloc(0)
  #at = 0

  /** Goes to the start of a line of UTF-8. The line must end with a line break. */
  start(line: Buffer): void {
    this.#bytes = line
    this.#at = 0
  }

  atEnd(): boolean {
    return this.#next() === LINE_BREAK
  }

  expectEnd(): void {
    if (!this.atEnd()) throw new NotJson()
  }

  /** Reads the closing bracket directly after an opening one. */
  isEmpty(closing: number): boolean {
    return this.#take(closing)
  }

  /** Reads the comma or the closing bracket after a member or an element. */
  hasMore(closing: number): boolean {
    if (this.#take(COMMA)) return true
    if (this.#take(closing)) return false
    throw new NotJson()
  }

  get position(): number {
    return this.#at
  }

  /** Reads this member name and its colon, if it comes next. @param quoted the name in quotes */
  takeName(quoted: Buffer): boolean {
    if (!this.#takeAll(quoted)) return false
    this.#expectColon()
    return true
  }

  /** Reads any member name and its colon. */
  readName(): string {
    if (this.#next() !== QUOTE) throw new NotJson()
    this.#string()
    this.#expectColon()
    return textOf(this.value)
  }

  /** Reads a value; of an object or array, only the opening bracket. */
  readValue(): Value {
    const next = this.#next()
    if (next === QUOTE) this.#string()
    else if (next === MINUS || isDigit(next)) this.#number()
    else this.#word()
    return this.value
  }

  #expectColon(): void {
    if (!this.#take(COLON)) throw new NotJson()
  }

  #string(): void {
    const [bytes, at] = [this.#bytes, this.#at]
    let end = at + 1
    let escaped = false
    while (bytes[end] !== QUOTE) {
      if (bytes[end] === BACKSLASH) {
        escaped = true
        end += 1
      }
      if ((bytes[end] ?? 0) < 0x20) throw new NotJson()
      end += 1
    }
    this.#set('string', at + 1, end)
    this.#at = end + 1
    if (escaped) this.#unescape()
  }

  /** Escapes are rare, so JSON.parse decodes them. */
  #unescape(): void {
    const { value } = this
    try {
      value.text = String(JSON.parse(`"${textOf(value)}"`))
    } catch {
      throw new NotJson()
    }
    value.bytes = Buffer.from(value.text)
    value.start = 0
    value.end = value.bytes.length
  }

  #number(): void {
    const [bytes, start] = [this.#bytes, this.#at]
    if (bytes[this.#at] === MINUS) this.#at += 1
    // A zero ends the integer: JSON has no leading zeros.
    if (bytes[this.#at] === ZERO) this.#at += 1
    else this.#digits()
    if (bytes[this.#at] === POINT) {
      this.#at += 1
      this.#digits()
    }
    const hasExponent = bytes[this.#at] === LOWER_E || bytes[this.#at] === UPPER_E
    if (hasExponent) {
      this.#at += 1
      if (bytes[this.#at] === MINUS || bytes[this.#at] === PLUS) this.#at += 1
      this.#digits()
    }
    this.#set('number', start, this.#at)
    if (hasExponent) this.value.text = textOf(this.value)
  }

  #digits(): void {
    const start = this.#at
    let end = start
    while (isDigit(this.#bytes[end])) end += 1
    this.#at = end
    if (end === start) throw new NotJson()
  }

  #word(): void {
    const start = this.#at
    const type = WORDS.find(([word]) => this.#takeAll(word))?.[1]
    if (!type) throw new NotJson()
    this.#set(type, start, this.#at)
  }

  #set(type: Value['type'], start: number, end: number): void {
    const { value } = this
    value.type = type
    value.bytes = this.#bytes
    value.start = start
    value.end = end
    value.text = undefined
  }

  /** Skips blanks and returns the next byte. */
  #next(): number | undefined {
    let byte = this.#bytes[this.#at]
    while (byte === SPACE || byte === TAB || byte === RETURN) byte = this.#bytes[++this.#at]
    return byte
  }

  #take(byte: number): boolean {
    const taken = this.#next() === byte
    if (taken) this.#at += 1
    return taken
  }

  #takeAll(expected: Buffer): boolean {
    this.#next()
    for (let index = 0; index < expected.length; index += 1) {
      if (this.#bytes[this.#at + index] !== expected[index]) return false
    }
    this.#at += expected.length
    return true
  }
}
