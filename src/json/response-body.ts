import { Readable } from 'node:stream'
import type { Holding } from '../postgres/response-memory.ts'
import type { RawRows } from '../postgres/wire/raw-rows.ts'
import { ownTurn } from './fair-scheduler.ts'
import type { RowWriter } from './row-writer.ts'

/** What stands before the first item and behind the last one. */
export interface Frame {
  opening: string
  closing: string
}

/** Pieces of an answer that is made while it is sent, in bytes at most, unless a row is longer. */
const PIECE = 65_536
/**
 * Pieces are written behind each other into a ring of so many bytes. A response takes no more when it
 * holds 64 KiB, and so never has as much as two pieces; one more is asked for ahead, and one is being
 * written. That is half of the ring: what is written over has left.
 */
const RING = 8 * PIECE
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
    // Where it is compressed, streams lie between, and who knows how much of it they keep.
    const place = holding.direct ? ring(holding.takeForJson(RING)) : elsewhere
    const parts = pieces(rows, writer, frame, place)
    return Readable.from(inTurns(parts, holding), { objectMode: false })
  }
  const size = frame.opening.length + frame.closing.length + writer.usual(rows)
  const block = holding.takeForJson(size)
  const place: Place = (atLeast, before) => (before === 0 ? block : elsewhere(atLeast))
  const [first, ...others] = pieces(rows, writer, frame, place)
  if (others.length === 0) return first as Buffer
  const whole = Buffer.concat([first as Buffer, ...others])
  holding.replaceJson(whole.length)
  return whole
}

/**
 * However many large answers are under way, no request waits for more than a piece or two of them. None
 * is written when the response is over: its memory is another's by then.
 */
async function* inTurns<T>(
  parts: Iterator<T>,
  holding: Holding,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    await ownTurn()
    if (holding.over) return
    const { value, done } = parts.next()
    if (done) return
    yield value
  }
}

/** Where a piece is written: room for so many bytes, behind so many of the piece before it. */
type Place = (atLeast: number, before: number) => Buffer

const elsewhere = (atLeast: number) => Buffer.allocUnsafe(Math.max(PIECE, atLeast))

/** Places behind each other, and from the beginning again at the end of the block. */
function ring(block: Buffer): Place {
  let start = 0
  let inRing = false
  return (atLeast, before) => {
    if (inRing) start += before
    if (start + PIECE > block.length) start = 0
    inRing = atLeast <= PIECE
    return inRing ? block.subarray(start, start + PIECE) : Buffer.allocUnsafe(atLeast)
  }
}

function* pieces(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  place: Place,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let piece = place(opening.length, 0)
  let at = opening.copy(piece)
  let comma = false
  for (const block of rows.takeBlocks()) {
    for (let row = 0; row < block.length; ) {
      const length = block.readInt32BE(row)
      const longest = writer.longest(length) + 1
      if (at + longest > piece.length) {
        yield piece.subarray(0, at)
        piece = place(longest, at)
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
