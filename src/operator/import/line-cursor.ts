import { isBlank, LINE_BREAK } from './json-bytes.ts'

/** The line is not JSON; the message says what is wrong, and where. */
export class NotJson extends Error {
  override name = 'NotJson'
}

/** A place in a line of UTF-8. The line ends with a line break, which no part of JSON reaches beyond. */
export class LineCursor {
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
