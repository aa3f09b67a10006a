import { isUtf8 } from 'node:buffer'
import { access, constants, open, stat } from 'node:fs/promises'
import { OperatorError } from '../../operator-error.ts'
import { UsageError } from '../errors.ts'

/** Something to import: a file, or standard input. */
export interface Source {
  /** How faults refer to it. */
  name: string
  chunks: AsyncIterable<Buffer>
}

/** What files begin with that are not lines of UTF-8, and what to do about it. */
const OTHER_FORMS: [number[], string][] = [
  [[0x1f, 0x8b], 'compressed by gzip: give what `gzip -dc` makes of it'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed by zstd: give what `zstd -dc` makes of it'],
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive: give the files in it'],
  [[0xff, 0xfe], 'UTF-16: give what `iconv -f UTF-16 -t UTF-8` makes of it'],
  [[0xfe, 0xff], 'UTF-16: give what `iconv -f UTF-16 -t UTF-8` makes of it'],
]

/**
 * The chunks of a source, as they come.
 * @throws OperatorError when its first bytes say that it is something else than text
 */
export async function* textOnly({ name, chunks }: Source): AsyncGenerator<Buffer> {
  let isFirst = true
  for await (const chunk of chunks) {
    const form = isFirst ? OTHER_FORMS.find(([begin]) => startsWith(chunk, begin)) : undefined
    if (form) throw new OperatorError(`${name} is ${form[1]}.`)
    isFirst = false
    yield chunk
  }
}

const startsWith = (chunk: Buffer, begin: number[]) =>
  begin.every((byte, index) => chunk[index] === byte)

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

const CHUNK_BYTES = 256 * 1024

/** The bytes of a file, always in the same buffer: a chunk is gone when the next one is asked for. */
export async function* readChunks(path: string): AsyncGenerator<Buffer> {
  const file = await open(path)
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
    }
  } finally {
    await file.close()
  }
}

/** A source whose size is known, unless it is a pipe. */
export interface Input extends Source {
  bytes: number | undefined
}

/**
 * Makes sure that all files can be read, before any of them is.
 * @param paths `-` is standard input
 * @throws OperatorError that names the first which cannot be read
 */
export async function openInputs(paths: string[]): Promise<Input[]> {
  if (paths.filter((path) => path === '-').length > 1) {
    throw new UsageError('Standard input (-) can be read only once.')
  }
  return await Promise.all(paths.map(openInput))
}

async function openInput(path: string): Promise<Input> {
  if (path === '-') return { name: 'standard input', chunks: process.stdin, bytes: undefined }
  try {
    await access(path, constants.R_OK)
    const stats = await stat(path)
    if (stats.isDirectory()) throw new OperatorError(`${path} is a folder: name the files in it.`)
    return { name: path, chunks: readChunks(path), bytes: stats.isFile() ? stats.size : undefined }
  } catch (error) {
    const sentence = FAULTS[(error as NodeJS.ErrnoException).code ?? '']
    throw sentence === undefined ? error : new OperatorError(`${path}: ${sentence}.`)
  }
}

const FAULTS: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'you may not read this file',
  ELOOP: 'its symbolic links go round in circles',
  ENAMETOOLONG: 'the name is too long for a file',
}
