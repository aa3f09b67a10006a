import type { Holding } from '../response-memory.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Rows as PostgreSQL sent them: each one a DataRow message without its type byte, that is an int32 of
 * its length (which counts itself), an int16 of its fields, and per field an int32 length (-1 is null)
 * with as many bytes of text. They are kept in blocks in which no row is split, a third of the size of
 * the JSON that is made of them; no value becomes a JavaScript string or number on its way.
 */
export class RawRows {
  count = 0
  byteLength = 0
  /** Whether there was no room for them: then none is kept, and there is no answer. */
  refused = false
  readonly #holding: Holding | undefined
  /** The filled parts of blocks, and the blocks as they were taken. */
  readonly #parts: Buffer[] = []
  readonly #blocks: Buffer[] = []
  #block: Buffer = NOTHING
  #end = 0

  /** @param holding where the memory of these rows is counted */
  constructor(holding?: Holding) {
    this.#holding = holding
  }

  /** Makes room for a row of `length` bytes, which arrive through append(). */
  begin(length: number): void {
    this.count += 1
    this.byteLength += length
    if (this.#end + length > this.#block.length && !this.refused) this.#grow(length)
  }

  append(chunk: Buffer, start: number, end: number): void {
    if (!this.refused) this.#end += chunk.copy(this.#block, this.#end, start, end)
  }

  /** Called once, when the last row has arrived. */
  finish(): this {
    this.#seal()
    this.#block = NOTHING
    return this
  }

  /** Takes the first row out and returns its fields as text. */
  shift(): (string | null)[] | undefined {
    const part = this.#parts[0]
    if (part === undefined) return undefined
    const length = part.readInt32BE(0)
    this.count -= 1
    this.byteLength -= length
    const fields = fieldsOf(part)
    if (length === part.length) this.#dropFirst()
    else this.#parts[0] = part.subarray(length)
    return fields
  }

  /** Hands out the blocks, and uses the memory of each for other rows when the next one is asked for. */
  *takeBlocks(): Generator<Buffer, void, undefined> {
    for (let part = this.#parts[0]; part; part = this.#parts[0]) {
      yield part
      this.#dropFirst()
    }
  }

  /** Forgets the rows: they are not to be had, or not wanted. */
  discard(): void {
    for (const { length } of this.#blocks) this.#holding?.release(length)
    this.#parts.length = 0
    this.#blocks.length = 0
    this.#end = 0
    this.#block = NOTHING
  }

  #dropFirst(): void {
    this.#parts.shift()
    const block = this.#blocks.shift()
    if (block) this.#holding?.giveBack(block)
  }

  #grow(length: number): void {
    this.#seal()
    const usual = Math.min(FIRST_BLOCK * 4 ** this.#parts.length, LAST_BLOCK)
    const size = Math.max(usual, length)
    const block = this.#holding ? this.#holding.take(size) : Buffer.allocUnsafe(size)
    if (block === undefined) {
      this.discard()
      this.refused = true
      return
    }
    this.#blocks.push(block)
    this.#block = block
    this.#end = 0
  }

  #seal(): void {
    if (this.#end > 0) this.#parts.push(this.#block.subarray(0, this.#end))
  }
}

// Sized for a daily sync of a dozen rows; the blocks of a full page grow from there.
const FIRST_BLOCK = 4_096
const LAST_BLOCK = 65_536

function fieldsOf(row: Buffer): (string | null)[] {
  const fields: (string | null)[] = []
  let at = 6
  for (let left = row.readInt16BE(4); left > 0; left -= 1) {
    const length = row.readInt32BE(at)
    at += 4
    fields.push(length < 0 ? null : row.toString('utf8', at, at + length))
    if (length > 0) at += length
  }
  return fields
}
