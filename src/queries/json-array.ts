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
const PIECE = 65_536
/**
 * How many of them are written before the memory of the first is used again. Streams ask for a piece when
 * the one before the last has left, so that three would do.
 */
const PIECES = 8
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
    const places = around(holding.takeForJson(PIECE * PIECES))
    return Readable.from(inTurns(pieces(rows, writer, frame, places)), { objectMode: false })
  }
  const size = frame.opening.length + frame.closing.length + writer.usual(rows)
  const places = once(holding.takeForJson(size))
  const [first, ...others] = pieces(rows, writer, frame, places)
  return others.length === 0 ? (first as Buffer) : Buffer.concat([first as Buffer, ...others])
}

/** However many large answers are under way, no request waits for more than a piece or two of them. */
async function* inTurns<T>(parts: Iterator<T>): AsyncGenerator<T, void, undefined> {
  for (;;) {
    await ownTurn()
    const { value, done } = parts.next()
    if (done) return
    yield value
  }
}

/** Where the next piece is written, which has to have room for so many bytes. */
type Places = (atLeast: number) => Buffer

/** The parts of a block in turn, over and over. */
function around(block: Buffer): Places {
  let turn = 0
  return (atLeast) => {
    const start = PIECE * (turn % PIECES)
    turn += 1
    return atLeast > PIECE ? Buffer.allocUnsafe(atLeast) : block.subarray(start, start + PIECE)
  }
}

/** One block, and what does not fit in it elsewhere. */
function once(block: Buffer): Places {
  let taken = false
  return (atLeast) => {
    if (taken || atLeast > block.length) return Buffer.allocUnsafe(Math.max(PIECE, atLeast))
    taken = true
    return block
  }
}

function* pieces(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  place: Places,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let piece = place(opening.length)
  let at = opening.copy(piece)
  let comma = false
  for (const block of rows.takeBlocks()) {
    for (let row = 0; row < block.length; ) {
      const length = block.readInt32BE(row)
      const longest = writer.longest(length) + 1
      if (at + longest > piece.length) {
        yield piece.subarray(0, at)
        piece = place(longest)
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
