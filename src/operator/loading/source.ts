import { isUtf8 } from 'node:buffer'
import { pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { OperatorError } from '../../operator-error.ts'
import { escaped } from '../output.ts'

export type FileFormat = 'ndjson' | 'csv'

export interface Source {
  name: string
  chunks: AsyncIterable<Buffer>
}

/** Rows have random ids, so gzip makes them at most 25 times smaller. Blank lines expand 1,000 times. */
const MAXIMUM_EXPANSION = 200

/** The first byte of gzip begins neither JSON nor a header of CSV. */
const isGzip = (start: Buffer | undefined) => start?.[0] === 0x1f

/** Programs on Windows write UTF-16, a computer that lost power leaves zero bytes, and spreadsheets save ZIP files. */
const OTHER_CONTENT: [start: string, advice: string][] = [
  ['fffe', 'is UTF-16, not UTF-8: `iconv -f UTF-16 -t UTF-8` converts it'],
  ['feff', 'is UTF-16, not UTF-8: `iconv -f UTF-16 -t UTF-8` converts it'],
  ['00', 'begins with a zero byte, so it is no text: get it again from its source'],
  ['504b0304', 'is a ZIP file or a spreadsheet: unpack it, or save it as CSV'],
  ['28b52ffd', 'is compressed by zstd: only gzip is read, so decompress it'],
  ['fd377a585a', 'is compressed by xz: only gzip is read, so decompress it'],
]

function requireText(name: string, start: Buffer | undefined): void {
  const bytes = start?.subarray(0, 5).toString('hex') ?? ''
  const other = OTHER_CONTENT.find(([prefix]) => bytes.startsWith(prefix))
  if (other) throw new OperatorError(`${escaped(name)} ${other[1]}.`)
}

/**
 * Decompresses a source. @throws OperatorError if it is no text, damaged, compressed twice or by another program than
 * gzip, or expands without end
 */
export async function* plainBytes({ name, chunks }: Source): AsyncGenerator<Buffer> {
  const iterator = chunks[Symbol.asyncIterator]()
  const { value: start } = await iterator.next()
  let given = 0
  async function* all() {
    if (start) yield start
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  async function* counted() {
    for await (const chunk of all()) {
      given += chunk.length
      yield chunk
    }
  }
  requireText(name, start)
  if (!isGzip(start)) return yield* all()
  const gunzip = createGunzip()
  let expanded = 0
  try {
    for await (const chunk of pipeline(Readable.from(counted()), gunzip, () => {})) {
      if (expanded === 0) {
        if (isGzip(chunk)) throw new OperatorError(`${escaped(name)} is compressed twice.`)
        requireText(name, chunk)
      }
      expanded += chunk.length
      if (expanded > MAXIMUM_EXPANSION * gunzip.bytesWritten)
        throw new OperatorError(
          `${escaped(name)} expands to more than ${MAXIMUM_EXPANSION} times its size: rows do not.`,
        )
      yield chunk
    }
    // Node.js ends without an error at a zero byte after a member, also if other members follow.
    if (given > gunzip.bytesWritten)
      throw new OperatorError(`${escaped(name)} is damaged: bytes follow its compressed data.`)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    if (!code.startsWith('Z_')) throw error
    throw new OperatorError(`${escaped(name)} is damaged: ${message}.`)
  }
}

/** A file without line breaks must not fill the memory. */
export const MAXIMUM_LINE_BYTES = 1024 * 1024

const LINE_BREAK = Buffer.from('\n')

/** A line that is not blank, without its line break. */
export interface Line {
  line: number
  text: string
  /** Reason why it cannot be read. */
  problem?: string | undefined
}

/** Cuts chunks into blocks of whole lines, each with its line break. Of a line that is too long, keeps at most one chunk more. */
async function* wholeLines(chunks: AsyncIterable<Buffer>, maximum: number): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  let size = 0
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_BREAK) + 1
    if (end > 0) {
      yield Buffer.concat([...rest, chunk.subarray(0, end)])
      rest = []
      size = 0
    }
    if (size <= maximum) rest.push(chunk.subarray(end))
    size += chunk.length - end
  }
  if (size > 0) yield Buffer.concat([...rest, LINE_BREAK])
}

/** Reads the lines of a source in blocks. A line becomes a text when it is taken, so few texts exist at a time. */
export async function* readLines(
  source: Source,
  maximum = MAXIMUM_LINE_BYTES,
): AsyncGenerator<Iterable<Line>> {
  let number = 0
  function* linesOf(block: Buffer): Generator<Line> {
    // Checking a block at once is many times faster than checking each line.
    const isValid = block.length <= maximum && isUtf8(block)
    for (let start = 0, end = 0; start < block.length; start = end + 1) {
      end = block.indexOf(LINE_BREAK, start)
      number += 1
      const problem = isValid ? undefined : lineProblem(block.subarray(start, end), maximum)
      const line = block.toString('utf8', start, end)
      // A byte order mark.
      const text = number === 1 ? line.replace(/^\ufeff/, '') : line
      if (problem || /[^ \t\r]/.test(text)) yield { line: number, text, problem }
    }
  }
  for await (const block of wholeLines(plainBytes(source), maximum)) yield linesOf(block)
}

function lineProblem(line: Buffer, maximum: number): string | undefined {
  if (line.length > maximum) return `the line is longer than ${maximum} bytes`
  return isUtf8(line) ? undefined : 'the line is not UTF-8'
}

/** Ends at an abort, also while a source sends nothing: Node.js cannot interrupt a read of a FIFO. */
export async function* untilAbort<T>(
  items: AsyncGenerator<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  while (!signal.aborted) {
    // Not one promise for all items: it would keep each of them until the abort.
    const { promise: aborted, resolve } = Promise.withResolvers<undefined>()
    const onAbort = () => resolve(undefined)
    signal.addEventListener('abort', onAbort)
    const next = await Promise.race([items.next(), aborted]).finally(() =>
      signal.removeEventListener('abort', onAbort),
    )
    if (next === undefined || next.done) return
    yield next.value
  }
}
