import type { MemoryAccount } from '../limits/memory-account.ts'
import type { Tenant } from '../limits/tenants.ts'
import type { WriteScheduler } from '../limits/write-scheduler.ts'
import type { RawRows } from '../postgres/wire/query.ts'
import type { RowWriter } from './row-writer.ts'

/** One buffer, or chunks on demand. The next chunk reuses the memory of the last one if `isSent` returns true. */
export type Body = Buffer | ((isSent: () => boolean) => AsyncIterable<Buffer>)

export interface Frame {
  opening: string
  closing: string
}

/** Largest chunk of a streamed response, in bytes, unless one row is longer. */
const CHUNK = 262_144
/** Largest rows that are written at once, in bytes. A full page takes one to two milliseconds. */
const AT_ONCE = 1_048_576

/** What the writer of a body shares with those of other responses. */
export interface Writing {
  memory: MemoryAccount
  scheduler: WriteScheduler
  /** Tenant of the response: those of one tenant write one after the other. */
  tenant: Tenant
}

/** Writes rows within their frame: above AT_ONCE bytes in chunks, because the JSON takes two to three times the memory. */
export function bodyOf(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  writing: Writing,
): Body | Promise<Body> {
  if (rows.byteLength > AT_ONCE) return chunksOf([rows], writer, frame, writing)
  const { memory, scheduler, tenant } = writing
  const waiting = scheduler.nextSmall(tenant, rows.byteLength)
  if (waiting === undefined) return wholeOf(rows, writer, frame, memory)
  return waiting.then(() => wholeOf(rows, writer, frame, memory))
}

function wholeOf(rows: RawRows, writer: RowWriter, frame: Frame, memory: MemoryAccount): Buffer {
  const size =
    frame.opening.length + frame.closing.length + rows.count * writer.overhead + rows.byteLength
  const firstChunk = memory.takeForBody(size)
  const [first, ...others] = writeChunks(rows, writer, frame, newChunk, firstChunk)
  if (others.length === 0) return first as Buffer
  const whole = Buffer.concat([first as Buffer, ...others])
  memory.count(whole.length)
  return whole
}

/** Writes rows in chunks, one in an iteration of the event loop. Reads the next rows when the last ones are sent. */
export function chunksOf(
  reads: Iterable<RawRows> | AsyncIterable<RawRows>,
  writer: RowWriter,
  { opening, closing }: Frame,
  { memory, scheduler, tenant }: Writing,
): Exclude<Body, Buffer> {
  return async function* (isSent) {
    // New memory for each chunk would cost others 0.1 s: the kernel clears it (docs/decisions/experiments.md).
    const block = memory.takeForBody(CHUNK)
    const allocate = (atLeast: number) => (atLeast <= CHUNK && isSent() ? block : newChunk(atLeast))
    let frame = { opening, closing }
    for await (const rows of reads) {
      const chunks = writeChunks(rows, writer, frame, allocate)
      for (;;) {
        // Node.js writes the last chunk to the socket after this iteration of the event loop.
        await scheduler.next(tenant)
        if (memory.isClosed) return
        const { value, done } = chunks.next()
        if (done) break
        if (value.length > 0) yield value
      }
      frame = { ...frame, opening: '' }
    }
  }
}

const newChunk = (atLeast: number) => Buffer.allocUnsafe(Math.max(CHUNK, atLeast))

function* writeChunks(
  rows: RawRows,
  writer: RowWriter,
  frame: Frame,
  allocate: (atLeast: number) => Buffer,
  firstChunk?: Buffer,
): Generator<Buffer, void, undefined> {
  const opening = Buffer.from(frame.opening)
  const closing = Buffer.from(frame.closing)
  let chunk = firstChunk ?? allocate(opening.length + closing.length)
  let target = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
  let at = opening.copy(chunk)
  let comma = false
  for (const block of rows.takeBlocks()) {
    const source = new DataView(block.buffer, block.byteOffset, block.length)
    for (let row = 0; row < block.length; ) {
      const length = source.getInt32(row)
      const longest = writer.overhead + 6 * length + 1
      if (at + longest > chunk.length) {
        yield chunk.subarray(0, at)
        chunk = allocate(longest)
        target = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
        at = 0
      }
      if (comma) {
        chunk[at] = 0x2c
        at += 1
      }
      comma = writer.commas
      at = writer.write(source, row, target, at)
      row += length
    }
  }
  // The ids of removed rows may be longer than a chunk.
  const fits = at + closing.length <= chunk.length
  yield chunk.subarray(0, fits ? at + closing.copy(chunk, at) : at)
  if (!fits) yield closing
}
