import type { MemoryReservation } from '../../limits/response-memory.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Rows as PostgreSQL sent them: DataRow messages without the type byte. A row has an int32 length (which includes
 * itself), an int16 field count, and its fields. A field has an int32 length (-1 is null) and its bytes of text. Blocks
 * have whole rows, at a third of the size of their JSON. No value becomes a JavaScript string or number.
 */
export class RawRows {
  count = 0
  byteLength = 0
  /** True if the reservation had no memory left. RawRows then keeps no row. */
  overLimit = false
  readonly #reservation: MemoryReservation | undefined
  readonly #parts: Buffer[] = []
  readonly #blocks: Buffer[] = []
  #block: Buffer = NOTHING
  #end = 0

  constructor(reservation?: MemoryReservation) {
    this.#reservation = reservation
  }

  /** Makes room for a row of `length` bytes, which append() receives. */
  begin(length: number): void {
    this.count += 1
    this.byteLength += length
    if (this.#end + length > this.#block.length && !this.overLimit) this.#grow(length)
  }

  append(chunk: Buffer, start: number, end: number): void {
    if (!this.overLimit) this.#end += chunk.copy(this.#block, this.#end, start, end)
  }

  finish(): this {
    this.#seal()
    this.#block = NOTHING
    return this
  }

  /** Removes the first row and returns its fields as text. */
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

  /** Yields the blocks. The next call releases the memory of the last block. */
  *takeBlocks(): Generator<Buffer, void, undefined> {
    for (let part = this.#parts[0]; part; part = this.#parts[0]) {
      yield part
      this.#dropFirst()
    }
  }

  /** Drops all rows. The pool does not reuse their blocks, because a caller may still use one. */
  discard(): void {
    for (const { length } of this.#blocks) this.#reservation?.count(-length)
    this.#parts.length = 0
    this.#blocks.length = 0
    this.#end = 0
    this.#block = NOTHING
  }

  #dropFirst(): void {
    this.#parts.shift()
    const block = this.#blocks.shift()
    if (block) this.#reservation?.giveBack(block)
  }

  #grow(length: number): void {
    this.#seal()
    const usual = Math.min(FIRST_BLOCK * 4 ** this.#parts.length, LAST_BLOCK)
    // For rows of 40 KB, a block of one row would waste a third of it.
    const size = Math.max(usual, length * Math.min(this.#parts.length + 1, ROWS_PER_BLOCK))
    const block = this.#reservation ? this.#reservation.take(size) : Buffer.allocUnsafe(size)
    if (block === undefined) {
      this.discard()
      this.overLimit = true
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

// In bytes. The first block has room for a daily sync of a dozen rows. For a full page, blocks grow.
const FIRST_BLOCK = 4_096
const LAST_BLOCK = 65_536
/** Minimum number of rows in a later block, however long they are. */
const ROWS_PER_BLOCK = 16

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
