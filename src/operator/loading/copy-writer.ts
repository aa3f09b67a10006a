import type { Value } from './json-scanner.ts'

const NOTHING = Buffer.alloc(0)
// States of a column without bytes in the source.
const UNSET = -3
const NULL = -2
const TEXT = -1

/** Writes rows in the text format of COPY. A row stores ranges of the source, and copies them when it is complete. */
export class CopyWriter {
  /** Range of each column's value in the source, or a state in `#starts`. */
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  /** Values of the columns in state TEXT. */
  readonly #texts: string[]
  #bytes = NOTHING
  #length = 0
  /** Expected size of the next buffer: 1.1 times the last one. */
  #expected = 0

  constructor(columns: number) {
    this.#starts = new Int32Array(columns)
    this.#ends = new Int32Array(columns)
    this.#texts = new Array<string>(columns).fill('')
  }

  /** Starts a row and discards an unfinished one. */
  begin(): void {
    this.#starts.fill(UNSET)
  }

  isSet(column: number): boolean {
    return this.#starts[column] !== UNSET
  }

  isNull(column: number): boolean {
    return this.#starts[column] === NULL
  }

  textOf(column: number, source: Buffer): string {
    const start = this.#starts[column] ?? NULL
    return start >= 0
      ? source.toString('utf8', start, this.#ends[column])
      : (this.#texts[column] ?? '')
  }

  setNull(column: number): void {
    this.#starts[column] = NULL
  }

  setText(column: number, text: string): void {
    this.#starts[column] = TEXT
    this.#texts[column] = text.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? '')
  }

  set(column: number, { text, start, end }: Value): void {
    if (text === undefined) {
      this.#starts[column] = start
      this.#ends[column] = end
    } else this.setText(column, text)
  }

  /** Writes the row, with its line number as the last column. */
  end(source: Buffer, line: number): void {
    this.#reserve()
    for (let column = 0; column < this.#starts.length; column += 1) {
      this.#writeColumn(column, source)
      this.#bytes[this.#length++] = 0x09
    }
    this.#length += this.#bytes.write(`${line}\n`, this.#length, 'latin1')
  }

  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = NOTHING
    this.#expected = Math.ceil(1.1 * this.#length)
    this.#length = 0
    return taken
  }

  #writeColumn(column: number, source: Buffer): void {
    const start = this.#starts[column] ?? NULL
    if (start === NULL) {
      this.#bytes[this.#length++] = 0x5c
      this.#bytes[this.#length++] = 0x4e
    } else if (start === TEXT) {
      this.#length += this.#bytes.write(this.#texts[column] ?? '', this.#length)
    } else {
      // For short values, a loop is faster than a call into native code.
      const end = this.#ends[column] ?? 0
      for (let at = start; at < end; at += 1) this.#bytes[this.#length++] = source[at] ?? 0
    }
  }

  /** Makes room for the row. A UTF-16 unit takes at most three bytes. */
  #reserve(): void {
    let size = 20
    for (let column = 0; column < this.#starts.length; column += 1) {
      const start = this.#starts[column] ?? NULL
      if (start >= 0) size += (this.#ends[column] ?? 0) - start
      if (start === TEXT) size += 3 * (this.#texts[column] ?? '').length
      size += 3
    }
    if (this.#length + size <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * (this.#length + size), this.#expected))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
