import { Readable } from 'node:stream'
import type { Holding } from '../database/answer-memory.ts'
import type { RawRows } from '../database/raw-rows.ts'
import type { RowWriter } from './json-writer.ts'
import { ownTurn } from './turns.ts'

/** What stands before the first item and behind the last one. */
export interface Frame {
  opening: string
  closing: string
}

/** Pieces of an answer that is made while it is sent, in bytes. */
const PIECE = 131_072
/** Rows of up to this many bytes are written in one go: a full page takes a millisecond or two. */
const AT_ONCE = 1_048_576

/**
 * Writes rows as a JSON array within its frame: as one buffer, or, where there is much of it, as a
 * stream of pieces that are made only when they are asked for. A client that reads slowly thus costs
 * the rows as PostgreSQL sent them, not the JSON, which is two or three times their size.
 */
export function jsonArray(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  holding: Holding,
): Buffer | Readable {
  if (rows.byteLength > AT_ONCE) {
    const first = Buffer.allocUnsafe(PIECE)
    return Readable.from(inTurns(pieces(rows, writer, frame, first)), { objectMode: false })
  }
  const size = frame.opening.length + frame.closing.length + writer.usual(rows)
  const [first, ...others] = pieces(rows, writer, frame, holding.takeForJson(size))
  return others.length === 0 ? (first as Buffer) : Buffer.concat([first as Buffer, ...others])
}

/** However many large answers are under way, no request waits for more than one piece of one of them. */
async function* inTurns<T>(parts: Iterator<T>): AsyncGenerator<T, void, undefined> {
  for (;;) {
    await ownTurn()
    const { value, done } = parts.next()
    if (done) return
    yield value
  }
}

function* pieces(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  first: Buffer,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let piece = first
  let at = opening.copy(piece)
  let comma = false
  for (const block of rows.takeBlocks()) {
    for (let row = 0; row < block.length; ) {
      const length = block.readInt32BE(row)
      const longest = writer.longest(length) + 1
      if (at + longest > piece.length) {
        yield piece.subarray(0, at)
        piece = Buffer.allocUnsafe(Math.max(first.length, longest))
        at = 0
      }
      if (comma) {
        piece[at] = 0x2c
        at += 1
      }
      comma = true
      at = writer.write(block, row, piece, at)
      row += length
    }
  }
  if (at + closing.length > piece.length) {
    yield piece.subarray(0, at)
    yield closing
  } else {
    yield piece.subarray(0, at + closing.copy(piece, at))
  }
}
