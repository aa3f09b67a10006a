import { Readable } from 'node:stream'
import type { MemoryReservation } from '../postgres/response-memory.ts'
import type { RawRows } from '../postgres/wire/raw-rows.ts'
import type { RowWriter } from './row-writer.ts'

/** JSON before the first item and after the last one. */
export interface Frame {
  opening: string
  closing: string
}

/** Largest chunk of a streamed response, in bytes, unless one row is longer. */
const CHUNK = 65_536
/**
 * Size of the ring that chunks are written into, one after the other. A response buffers less than two
 * chunks (it stops at 64 KiB), one is requested ahead and one is being written: half of the ring. What
 * is overwritten has been sent.
 */
const RING = 8 * CHUNK
/** Rows of up to this many bytes are written at once: a full page takes a millisecond or two. */
const AT_ONCE = 1_048_576

/**
 * Writes rows as a JSON array within its frame: as one buffer or, above AT_ONCE, as a stream of chunks
 * that are made on demand. A slow client then costs the rows as PostgreSQL sent them, not their JSON,
 * which is two to three times as large.
 */
export function jsonArray(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  reservation: MemoryReservation,
): Buffer | Readable {
  if (rows.byteLength > AT_ONCE) {
    // A compressing stream may keep any amount of what it gets: no ring then.
    const allocate = reservation.direct ? ring(reservation.takeForJson(RING)) : fresh
    const chunks = writeChunks(rows, writer, frame, allocate)
    return Readable.from(scheduled(chunks, reservation), { objectMode: false })
  }
  const size = frame.opening.length + frame.closing.length + writer.estimate(rows)
  const block = reservation.takeForJson(size)
  const allocate: Allocate = (atLeast, before) => (before === 0 ? block : fresh(atLeast))
  const [first, ...others] = writeChunks(rows, writer, frame, allocate)
  if (others.length === 0) return first as Buffer
  const whole = Buffer.concat([first as Buffer, ...others])
  reservation.replaceJson(whole.length)
  return whole
}

/** Yields chunks in turns. Stops when the response has ended: its memory belongs to another by then. */
async function* scheduled<T>(
  chunks: Iterator<T>,
  reservation: MemoryReservation,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    await reservation.nextTurn()
    if (reservation.ended) return
    const { value, done } = chunks.next()
    if (done) return
    yield value
  }
}

/** Returns room for `atLeast` bytes, after a chunk of `before` bytes. */
type Allocate = (atLeast: number, before: number) => Buffer

const fresh = (atLeast: number) => Buffer.allocUnsafe(Math.max(CHUNK, atLeast))

/** Allocates chunks one after the other, and again from the start at the end of the block. */
function ring(block: Buffer): Allocate {
  let start = 0
  let inRing = false
  return (atLeast, before) => {
    if (inRing) start += before
    if (start + CHUNK > block.length) start = 0
    inRing = atLeast <= CHUNK
    return inRing ? block.subarray(start, start + CHUNK) : Buffer.allocUnsafe(atLeast)
  }
}

function* writeChunks(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  allocate: Allocate,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let chunk = allocate(opening.length, 0)
  let at = opening.copy(chunk)
  let comma = false
  for (const block of rows.takeBlocks()) {
    for (let row = 0; row < block.length; ) {
      const length = block.readInt32BE(row)
      const longest = writer.longest(length) + 1
      if (at + longest > chunk.length) {
        yield chunk.subarray(0, at)
        chunk = allocate(longest, at)
        at = 0
      }
      if (comma) {
        chunk[at] = 0x2c
        at += 1
      }
      comma = true
      at = writer.write(block, row, chunk, at)
      row += length
    }
  }
  if (at + closing.length > chunk.length) {
    yield chunk.subarray(0, at)
    yield closing
  } else {
    yield chunk.subarray(0, at + closing.copy(chunk, at))
  }
}
