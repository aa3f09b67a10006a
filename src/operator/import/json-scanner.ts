import * as json from './json-bytes.ts'
import { scanNumber } from './json-number.ts'
import { textOf, type Value } from './json-value.ts'
import { LineCursor, NotJson } from './line-cursor.ts'

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
    return this.#cursor.next() === json.LINE_BREAK
  }

  /** @throws NotJson unless nothing but blanks is left */
  expectEnd(): void {
    if (!this.atEnd()) throw this.#cursor.unexpected('nothing more is expected after the object')
  }

  /** Whether an object that has just begun is over. */
  isEmptyObject(): boolean {
    return this.#cursor.take(json.CLOSING_BRACE)
  }

  /** Whether the object goes on after a member. @throws NotJson where it neither does nor ends */
  hasMoreMembers(): boolean {
    if (this.#cursor.take(json.COMMA)) return true
    if (this.#cursor.take(json.CLOSING_BRACE)) return false
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
    if (this.#cursor.next() !== json.QUOTE) {
      throw this.#cursor.unexpected('the name of a field, in double quotes, is expected')
    }
    this.#string()
    this.#expectColon()
    return textOf(this.value)
  }

  /** Reads a value; of an object or array only the opening bracket. @throws NotJson */
  readValue(): Value {
    const next = this.#cursor.next()
    if (next === json.QUOTE) this.#string()
    else if (next === json.MINUS || json.isDigit(next)) this.#number()
    else this.#word()
    return this.value
  }

  #expectColon(): void {
    if (!this.#cursor.take(json.COLON)) throw this.#cursor.unexpected('a colon is expected')
  }

  #string(): void {
    const { bytes, at } = this.#cursor
    let end = at + 1
    let escaped = false
    while (bytes[end] !== json.QUOTE) {
      if (bytes[end] === json.BACKSLASH) {
        escaped = true
        end += 1
      }
      if (json.isControl(bytes[end])) throw this.#brokenString(end)
      end += 1
    }
    this.#set('string', at + 1, end)
    this.#cursor.at = end + 1
    if (escaped) this.#unescape(at)
  }

  #brokenString(at: number): NotJson {
    const isLineEnd = this.#cursor.bytes[at] === json.LINE_BREAK
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
