import { isUtf8 } from 'node:buffer'

/** Longer lines are refused, so that a file without line breaks does not fill the memory. */
const MAXIMUM_LINE_BYTES = 1024 * 1024

const NOTHING = Buffer.alloc(0)
const LINE_BREAK = Buffer.from('\n')
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Cuts the chunks of a file into blocks of whole lines. Each line ends with a line break, the last one
 * of the file too, and a byte order mark at the start is gone. A block may lie in its chunk, and a
 * chunk may be written over when the next one is asked for. Holds no more than one line itself; of a
 * line that is too long, as much as shows that.
 */
export async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = NOTHING
  let isFirst = true
  const block = (bytes: Buffer) => {
    const isMarked = isFirst && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)
    isFirst = false
    return isMarked ? bytes.subarray(3) : bytes
  }
  for await (const chunk of chunks) {
    const restEnd = rest.length > 0 ? chunk.indexOf(LINE_BREAK) + 1 : 0
    const end = chunk.lastIndexOf(LINE_BREAK) + 1
    if (restEnd > 0) yield block(Buffer.concat([rest, chunk.subarray(0, restEnd)]))
    if (end > restEnd) yield block(chunk.subarray(restEnd, end))
    const unended = end > 0 ? [chunk.subarray(end)] : [rest, chunk]
    rest = Buffer.concat(unended).subarray(0, MAXIMUM_LINE_BYTES + 1)
  }
  if (rest.length > 0) yield block(Buffer.concat([rest, LINE_BREAK]))
}

/** A line of a block, its line break aside, and why it cannot be read, if it cannot. */
export interface Line {
  start: number
  end: number
  fault: string | undefined
}

/** The lines of a block. */
export function* linesOf(block: Buffer): Generator<Line> {
  // Looking at the whole block is many times faster than at each of its lines.
  const isSound = block.length <= MAXIMUM_LINE_BYTES && isUtf8(block)
  for (let start = 0; start < block.length; ) {
    const end = block.indexOf(LINE_BREAK[0] ?? 0, start)
    yield { start, end, fault: isSound ? undefined : lineFault(block.subarray(start, end)) }
    start = end + 1
  }
}

function lineFault(line: Buffer): string | undefined {
  if (line.length > MAXIMUM_LINE_BYTES) return `the line is longer than ${MAXIMUM_LINE_BYTES} bytes`
  return isUtf8(line) ? undefined : 'the line is not UTF-8'
}
