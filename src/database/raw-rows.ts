import type { Holding } from './answer-memory.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Rows as PostgreSQL sent them: each one a DataRow message without its type byte, that is an int32 of
 * its length (which counts itself), an int16 of its fields, and per field an int32 length (-1 is null)
 * with as many bytes of text. They are kept in blocks in which no row is split, a third of the size of
 * the JSON that is made of them; no value becomes a JavaScript string or number on its way.
 */
export class RawRows {
  readonly blocks: Buffer[] = []
  count = 0
  byteLength = 0
  /** Whether there was no room for them: then none is kept, and there is no answer. */
  refused = false
  readonly #holding: Holding | undefined
  #held = 0
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
    const block = this.blocks[0]
    if (block === undefined) return undefined
    const length = block.readInt32BE(0)
    if (length === block.length) this.blocks.shift()
    else this.blocks[0] = block.subarray(length)
    this.count -= 1
    this.byteLength -= length
    return fieldsOf(block)
  }

  /** Hands out the blocks, and uses the memory of each for other rows when the next one is asked for. */
  *takeBlocks(): Generator<Buffer, void, undefined> {
    for (let block = this.blocks.shift(); block; block = this.blocks.shift()) {
      yield block
      this.#holding?.giveBack(block)
    }
  }

  /** Forgets the rows: they are not to be had, or not wanted. */
  discard(): void {
    this.blocks.length = 0
    this.#end = 0
    this.#block = NOTHING
    this.#holding?.release(this.#held)
    this.#held = 0
  }

  #grow(length: number): void {
    this.#seal()
    const usual = Math.min(FIRST_BLOCK * 4 ** this.blocks.length, LAST_BLOCK)
    const size = Math.max(usual, length)
    const block = this.#holding ? this.#holding.take(size) : Buffer.allocUnsafe(size)
    if (block === undefined) {
      this.discard()
      this.refused = true
      return
    }
    this.#held += size
    this.#block = block
    this.#end = 0
  }

  #seal(): void {
    if (this.#end > 0) this.blocks.push(this.#block.subarray(0, this.#end))
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
