import { Readable } from 'node:stream'
import type { ReadContext } from '../limits/context.ts'
import type { RawRows } from '../postgres/wire/raw-rows.ts'
import type { RowWriter } from './row-writer.ts'

export interface Frame {
  opening: string
  closing: string
  /** True if the writer ends each row: no commas between them. */
  lines?: boolean
}

/** Largest chunk of a streamed response, in bytes, unless one row is longer. */
const CHUNK = 65_536
/**
 * Size of the ring buffer of chunks, in bytes. At most half of it is unsent. The stream buffers less
 * than two chunks (it stops at 64 KiB). One chunk is requested ahead, and one is being written.
 */
const RING = 8 * CHUNK
/** Largest rows that are written at once, in bytes. A full page takes one to two milliseconds. */
const AT_ONCE = 1_048_576

/**
 * Writes rows as a JSON array within its frame. Above AT_ONCE bytes of rows, it returns a stream that
 * makes chunks on demand: the JSON takes two to three times the memory of the rows.
 */
export function jsonArray(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  context: ReadContext,
): Buffer | Readable {
  if (rows.byteLength > AT_ONCE) {
    const chunks = writeChunks(rows, writer, frame, chunkAllocator(context))
    return Readable.from(scheduled(chunks, context), { objectMode: false })
  }
  const size = frame.opening.length + frame.closing.length + writer.estimate(rows)
  const block = context.memory.takeForJson(size)
  const allocate: Allocate = (atLeast, before) => (before === 0 ? block : fresh(atLeast))
  const [first, ...others] = writeChunks(rows, writer, frame, allocate)
  if (others.length === 0) return first as Buffer
  const whole = Buffer.concat([first as Buffer, ...others])
  context.memory.replaceJson(whole.length)
  return whole
}

/** Streams the rows of several reads after `opening`. Reads the next rows when most of the last ones are sent. */
export function rowStream(
  reads: AsyncIterable<RawRows>,
  writer: RowWriter,
  opening: string,
  context: ReadContext,
): Readable {
  const allocate = chunkAllocator(context)
  /** Length of the last chunk of a read, which the ring must not overwrite. */
  let last = 0
  const next: Allocate = (atLeast, before) => {
    const length = before + last
    last = 0
    return allocate(atLeast, length)
  }
  async function* chunks() {
    let frame = { opening, closing: '', lines: true }
    for await (const rows of reads) {
      let length = 0
      for await (const chunk of scheduled(writeChunks(rows, writer, frame, next), context)) {
        length = chunk.length
        if (length > 0) yield chunk
      }
      last = length
      frame = { ...frame, opening: '' }
    }
  }
  return Readable.from(chunks(), { objectMode: false })
}

/** Yields chunks in turns. Stops when the response has ended: another one then uses its memory. */
async function* scheduled<T>(
  chunks: Iterator<T>,
  context: ReadContext,
): AsyncGenerator<T, void, undefined> {
  for (;;) {
    await context.limits.scheduler.nextTurn()
    if (context.ended) return
    const { value, done } = chunks.next()
    if (done) return
    yield value
  }
}

type Allocate = (atLeast: number, before: number) => Buffer

/** A compression stream may keep chunks of any total size, so it gets no ring. */
const chunkAllocator = ({ keepsChunks, memory }: ReadContext): Allocate =>
  keepsChunks ? fresh : ring(memory.takeForJson(RING))

const fresh = (atLeast: number) => Buffer.allocUnsafe(Math.max(CHUNK, atLeast))

function ring(block: Buffer): Allocate {
  let start = 0
  return (atLeast, before) => {
    // A chunk outside of the ring counts, too: as many bytes are then between two uses of a place.
    start += before
    if (start + CHUNK > block.length) start = 0
    return atLeast <= CHUNK ? block.subarray(start, start + CHUNK) : Buffer.allocUnsafe(atLeast)
  }
}

const viewOf = ({ buffer, byteOffset, length }: Buffer) => new DataView(buffer, byteOffset, length)

function* writeChunks(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  allocate: Allocate,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let chunk = allocate(opening.length + closing.length, 0)
  let target = viewOf(chunk)
  let at = opening.copy(chunk)
  let comma = false
  for (const block of rows.takeBlocks()) {
    const source = viewOf(block)
    for (let row = 0; row < block.length; ) {
      const length = source.getInt32(row)
      // The closing part always has room after the row.
      const longest = writer.longest(length) + 1 + closing.length
      if (at + longest > chunk.length) {
        yield chunk.subarray(0, at)
        chunk = allocate(longest, at)
        target = viewOf(chunk)
        at = 0
      }
      if (comma) {
        chunk[at] = 0x2c
        at += 1
      }
      comma = !frame.lines
      at = writer.write(source, row, target, at)
      row += length
    }
  }
  yield chunk.subarray(0, at + closing.copy(chunk, at))
}
