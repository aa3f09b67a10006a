import type { Value } from './json-scanner.ts'

/**
 * Writes rows in the text format of COPY. Most values are the very bytes of the source, so a row
 * remembers where they stand there, and copies them once when it turns out to be whole.
 */
export class CopyWriter {
  /** Where each column of the row begins and ends in the source; or a state below, and nothing. */
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  /** What columns hold that does not stand in the source. */
  readonly #texts: string[]
  #bytes = NOTHING
  #length = 0
  /** A little more than was taken last: so much is needed again, most likely. */
  #usual = 0

  constructor(columns: number) {
    this.#starts = new Int32Array(columns)
    this.#ends = new Int32Array(columns)
    this.#texts = new Array<string>(columns).fill('')
  }

  /** Begins a row; it forgets what was told of the one before. */
  begin(): void {
    this.#starts.fill(UNTOLD)
  }

  isTold(column: number): boolean {
    return this.#starts[column] !== UNTOLD
  }

  isNull(column: number): boolean {
    return this.#starts[column] === NULL
  }

  setNull(column: number): void {
    this.#starts[column] = NULL
  }

  setText(column: number, text: string): void {
    this.#starts[column] = TEXT
    this.#texts[column] = text.replace(/[\\\t\n\r]/g, escaped)
  }

  /** Takes over a value whose bytes, unless it has a text of its own, stand in the row's source. */
  set(column: number, { text, start, end }: Value): void {
    if (text === undefined) {
      this.#starts[column] = start
      this.#ends[column] = end
    } else this.setText(column, text)
  }

  /** Ends a row, with the number of its line as its last column. */
  end(source: Buffer, line: number): void {
    this.#reserve()
    for (let column = 0; column < this.#starts.length; column += 1) {
      this.#column(column, source)
      this.#bytes[this.#length++] = 0x09
    }
    this.#length += this.#bytes.write(`${line}\n`, this.#length, 'latin1')
  }

  /** Hands over all rows since it was called last. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = NOTHING
    this.#usual = Math.ceil(1.1 * this.#length)
    this.#length = 0
    return taken
  }

  #column(column: number, source: Buffer): void {
    const start = this.#starts[column] ?? NULL
    if (start === NULL) {
      this.#bytes[this.#length++] = 0x5c
      this.#bytes[this.#length++] = 0x4e
    } else if (start === TEXT) {
      this.#length += this.#bytes.write(this.#texts[column] ?? '', this.#length)
    } else {
      // Byte by byte: for so few, it is faster than a call into native code.
      const end = this.#ends[column] ?? 0
      for (let at = start; at < end; at += 1) this.#bytes[this.#length++] = source[at] ?? 0
    }
  }

  /** Makes room for the row. A character takes three bytes at most for each unit of its text. */
  #reserve(): void {
    let need = 20
    for (let column = 0; column < this.#starts.length; column += 1) {
      const start = this.#starts[column] ?? NULL
      if (start >= 0) need += (this.#ends[column] ?? 0) - start
      if (start === TEXT) need += 3 * (this.#texts[column] ?? '').length
      need += 3
    }
    if (this.#length + need > this.#bytes.length) this.#grow(2 * (this.#length + need))
  }

  #grow(capacity: number): void {
    const larger = Buffer.allocUnsafe(Math.max(capacity, this.#usual))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

function escaped(character: string): string {
  return { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }[character] ?? character
}

const NOTHING = Buffer.alloc(0)
const UNTOLD = -3
const NULL = -2
const TEXT = -1
