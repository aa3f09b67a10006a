/** The bytes that mean something in JSON. */
const LINE_BREAK = 0x0a
const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const COLON = 0x3a
const BACKSLASH = 0x5c
const CLOSING_BRACE = 0x7d

type Byte = number | undefined

/** A blank within a line. */
function isBlank(byte: Byte): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

function isDigit(byte: Byte): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

function isSign(byte: Byte): boolean {
  return byte === MINUS || byte === 0x2b
}

/** What begins an exponent, `e` or `E`. */
function isExponent(byte: Byte): boolean {
  return byte === 0x65 || byte === 0x45
}

/** A control character, which a string may hold only escaped; the end of the line is one. */
function isControl(byte: Byte): boolean {
  return byte === undefined || byte < 0x20
}

/** The line is not JSON; the message says what is wrong, and where. */
export class NotJson extends Error {
  override name = 'NotJson'
}

/** A place in a line of UTF-8. The line ends with a line break, which no part of JSON reaches beyond. */
class LineCursor {
  bytes: Buffer = Buffer.alloc(0)
  at = 0
  #lineStart = 0

  /** Goes to the beginning of a line. */
  start(bytes: Buffer, at: number): void {
    this.bytes = bytes
    this.at = at
    this.#lineStart = at
  }

  /** Skips blanks, and shows what comes then. */
  next(): number | undefined {
    while (isBlank(this.bytes[this.at])) this.at += 1
    return this.bytes[this.at]
  }

  /** Skips blanks, and the byte if it comes then. */
  take(byte: number): boolean {
    const taken = this.next() === byte
    if (taken) this.at += 1
    return taken
  }

  /** Skips blanks, and the bytes if they come then. */
  takeAll(expected: Buffer): boolean {
    this.next()
    for (let index = 0; index < expected.length; index += 1) {
      if (this.bytes[this.at + index] !== expected[index]) return false
    }
    this.at += expected.length
    return true
  }

  /** An error for what stands here, or at another place. */
  unexpected(expectation: string, at = this.at): NotJson {
    if (this.bytes[at] === LINE_BREAK) {
      return new NotJson(`${expectation}, and the line ends there: was the file cut short?`)
    }
    const [found] = this.bytes.toString('utf8', at, at + 4)
    return new NotJson(`${expectation} ${this.placeOf(at)}, not ${JSON.stringify(found)}`)
  }

  placeOf(at: number): string {
    const before = this.bytes.toString('utf8', this.#lineStart, at)
    return `at character ${before.length + 1}`
  }
}

/**
 * Steps over a JSON number, which may not begin with a zero that other digits follow.
 * @returns whether it has an exponent
 * @throws NotJson
 */
function scanNumber(cursor: LineCursor): boolean {
  const { bytes } = cursor
  if (bytes[cursor.at] === MINUS) cursor.at += 1
  if (bytes[cursor.at] === ZERO) cursor.at += 1
  else scanDigits(cursor)
  if (bytes[cursor.at] === POINT) {
    cursor.at += 1
    scanDigits(cursor)
  }
  if (!isExponent(bytes[cursor.at])) return false
  cursor.at += 1
  if (isSign(bytes[cursor.at])) cursor.at += 1
  scanDigits(cursor)
  return true
}

function scanDigits(cursor: LineCursor): void {
  const start = cursor.at
  let end = start
  while (isDigit(cursor.bytes[end])) end += 1
  cursor.at = end
  if (end === start) throw cursor.unexpected('a digit is expected')
}

/** A JSON value as it stands in its line. */
export interface Value {
  kind: 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'
  bytes: Buffer
  /** Where in `bytes` it begins and ends: a string without its quotes, an object only its brace. */
  start: number
  end: number
  /** What it says, where its bytes do not: a string with escapes, a number with an exponent. */
  text: string | undefined
}

export function textOf({ text, bytes, start, end }: Value): string {
  return text ?? bytes.toString('utf8', start, end)
}

/** A value for people: in JSON, so that nothing in it reaches a terminal as a control sequence. */
export function shown(value: Value): string {
  if (value.kind === 'object' || value.kind === 'array') return `an ${value.kind}`
  const text = textOf(value)
  const short = text.length > 40 ? `${text.slice(0, 40)}…` : text
  return value.kind === 'string' ? JSON.stringify(short) : short
}

const WORDS: [Buffer, Value['kind']][] = [
  [Buffer.from('null'), 'null'],
  [Buffer.from('true'), 'boolean'],
  [Buffer.from('false'), 'boolean'],
  [Buffer.from('{'), 'object'],
  [Buffer.from('['), 'array'],
]

/**
 * Reads one line of JSON (RFC 8259) piece by piece, without making strings of it. JSON.parse would
 * make floats of numbers and keep the last of two members with one name; with a reviver that is shown
 * the source it keeps the digits, still hides the second member, and takes several times as long.
 */
export class JsonScanner {
  /** The last value read: the same object each time. */
  readonly value: Value = {
    kind: 'null',
    bytes: Buffer.alloc(0),
    start: 0,
    end: 0,
    text: undefined,
  }
  readonly #cursor = new LineCursor()

  /** Goes to the beginning of a line of UTF-8, which must end with a line break. */
  start(bytes: Buffer, at: number): void {
    this.#cursor.start(bytes, at)
  }

  /** Whether nothing but blanks is left. */
  atEnd(): boolean {
    return this.#cursor.next() === LINE_BREAK
  }

  /** @throws NotJson unless nothing but blanks is left */
  expectEnd(): void {
    if (!this.atEnd()) throw this.#cursor.unexpected('nothing more is expected after the object')
  }

  /** Whether an object that has just begun is over. */
  isEmptyObject(): boolean {
    return this.#cursor.take(CLOSING_BRACE)
  }

  /** Whether the object goes on after a member. @throws NotJson where it neither does nor ends */
  hasMoreMembers(): boolean {
    if (this.#cursor.take(COMMA)) return true
    if (this.#cursor.take(CLOSING_BRACE)) return false
    throw this.#cursor.unexpected('a comma or a closing brace is expected')
  }

  /** Steps over the name of a member, given with its quotes, if it is that one. @throws NotJson */
  takeName(quoted: Buffer): boolean {
    if (!this.#cursor.takeAll(quoted)) return false
    this.#expectColon()
    return true
  }

  /** Reads the name of a member, whatever it is. @throws NotJson */
  readName(): string {
    if (this.#cursor.next() !== QUOTE) {
      throw this.#cursor.unexpected('the name of a field, in double quotes, is expected')
    }
    this.#string()
    this.#expectColon()
    return textOf(this.value)
  }

  /** Reads a value; of an object or array only the opening bracket. @throws NotJson */
  readValue(): Value {
    const next = this.#cursor.next()
    if (next === QUOTE) this.#string()
    else if (next === MINUS || isDigit(next)) this.#number()
    else this.#word()
    return this.value
  }

  #expectColon(): void {
    if (!this.#cursor.take(COLON)) throw this.#cursor.unexpected('a colon is expected')
  }

  #string(): void {
    const { bytes, at } = this.#cursor
    let end = at + 1
    let escaped = false
    while (bytes[end] !== QUOTE) {
      if (bytes[end] === BACKSLASH) {
        escaped = true
        end += 1
      }
      if (isControl(bytes[end])) throw this.#brokenString(end)
      end += 1
    }
    this.#set('string', at + 1, end)
    this.#cursor.at = end + 1
    if (escaped) this.#unescape(at)
  }

  #brokenString(at: number): NotJson {
    const isLineEnd = this.#cursor.bytes[at] === LINE_BREAK
    const expectation = isLineEnd ? 'a closing quote' : 'a character that may stand in a string'
    return this.#cursor.unexpected(`${expectation} is expected`, at)
  }

  /** Strings with escapes are few, and JSON.parse knows all about them. */
  #unescape(at: number): void {
    const { value } = this
    try {
      value.text = String(JSON.parse(`"${textOf(value)}"`))
    } catch {
      throw new NotJson(`a string has an escape that JSON has not, ${this.#cursor.placeOf(at)}`)
    }
    value.bytes = Buffer.from(value.text)
    value.start = 0
    value.end = value.bytes.length
  }

  #number(): void {
    const start = this.#cursor.at
    const hasExponent = scanNumber(this.#cursor)
    this.#set('number', start, this.#cursor.at)
    if (hasExponent) this.value.text = textOf(this.value)
  }

  #word(): void {
    const start = this.#cursor.at
    const kind = WORDS.find(([word]) => this.#cursor.takeAll(word))?.[1]
    if (!kind) throw this.#cursor.unexpected('a value is expected')
    this.#set(kind, start, this.#cursor.at)
  }

  #set(kind: Value['kind'], start: number, end: number): void {
    const { value } = this
    value.kind = kind
    value.bytes = this.#cursor.bytes
    value.start = start
    value.end = end
    value.text = undefined
  }
}
