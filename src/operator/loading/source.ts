import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import { getSystemErrorMessage } from 'node:util'
import { createGunzip } from 'node:zlib'
import { OperatorError } from '../../operator-error.ts'
import { UsageError } from '../errors.ts'
import { escaped } from '../output.ts'

/** Format of the input: a JSON object on each line, or CSV with a header. */
export type Format = 'ndjson' | 'csv'

export interface Source {
  name: string
  chunks: AsyncIterable<Buffer>
}

const WORKBOOK = 'a workbook: save its sheet as CSV in UTF-8, and use `--format csv`'

/** First bytes of files that are not UTF-8 text, as Latin-1, and advice. */
const OTHER_FORMATS: [RegExp, string][] = [
  [/^\x28\xb5\x2f\xfd/, 'compressed by zstd: give the output of `zstd -dc`'],
  [/^BZh/, 'compressed by bzip2: give the output of `bzip2 -dc`'],
  [/^\xfd7zXZ/, 'compressed by xz: give the output of `xz -dc`'],
  // Excel and LibreOffice: a zip archive has the name of its first entry at byte 30.
  [/^PK[^ -~]{2}.{26}(?:\[Content_Types\]|_rels\/|docProps\/|xl\/|mimetype)/s, WORKBOOK],
  [/^\xd0\xcf.\xe0/, WORKBOOK],
  [/^PK[^ -~]{2}/, 'a zip archive: give the files in it'],
  [/^.{257}ustar {0,2}\0/s, 'a tar archive: give the files in it'],
  [/^%PDF/, 'a PDF document: export its rows as newline-delimited JSON or CSV'],
  [
    /^\xff\xfe|^\xfe\xff|^.{0,3}\0/s,
    'UTF-16 or damaged: give the output of `iconv -f UTF-16 -t UTF-8`, or export it again',
  ],
]

/** First characters of texts in neither format. jq before 1.7 rounds numbers. */
const OTHER_IN_BOTH: [RegExp, string][] = [
  [/^\s*</, 'HTML or XML, such as an error page: export newline-delimited JSON or CSV'],
  [/^\s*\[/, "a JSON array: give the output of `jq -c '.[]'` (1.7 or later)"],
  [
    /^\s*\{\s*"items"\s*:/,
    "a page of the API: give the output of `jq -c '.items[]'` (1.7 or later)",
  ],
  [/^\s*\{\s*\n/, 'formatted over several lines: give the output of `jq -c .` (1.7 or later)'],
]

/** First characters of text in another form than the format of the import. */
const OTHER_TEXTS: Record<Format, [RegExp, string][]> = {
  ndjson: [...OTHER_IN_BOTH, [/^\s*[^\s{][^\n{]*[,;\t]/, 'probably CSV: add `--format csv`']],
  csv: [
    ...OTHER_IN_BOTH,
    [/^\s*\{/, 'newline-delimited JSON: leave out `--format csv`'],
    [/^\ufeff?sep=/i, 'CSV with a line for Excel: give the output of `tail -n +2`'],
  ],
}

/** Bytes that decide about the format, unless an object ends before: its sender may wait for the result. */
const START_BYTES = 265
const OBJECT = /^\s*\{.*\}\s*\n/

/** Passes on the bytes of a source, decompressed. @throws OperatorError when it has another format or is damaged */
export async function* plainText(
  { name, chunks }: Source,
  format: Format,
): AsyncGenerator<Buffer, void> {
  const iterator = chunks[Symbol.asyncIterator]()
  try {
    let start: Buffer = Buffer.alloc(0)
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      start = Buffer.concat([start, next.value])
      if (start.length >= START_BYTES || OBJECT.test(start.toString())) break
    }
    const all = async function* () {
      yield start
      yield* { [Symbol.asyncIterator]: () => iterator }
    }
    if (start[0] === 0x1f && start[1] === 0x8b)
      return yield* plainText({ name, chunks: decompress(name, all()) }, format)
    const bytes = start.toString('latin1')
    const text = start.toString()
    const other =
      OTHER_FORMATS.find(([pattern]) => pattern.test(bytes)) ??
      OTHER_TEXTS[format].find(([pattern]) => pattern.test(text))
    if (other) throw new OperatorError(`${escaped(name)} is ${other[1]}.`)
    yield* all()
  } finally {
    await iterator.return?.()
  }
}

/** Rows have random ids, so gzip makes them at most 25 times smaller. Blank lines expand 1,000 times. */
const MAXIMUM_EXPANSION = 200
/** A small file may be of any kind. */
const EXPANDED_BYTES = 4 * 1024 * 1024

/** @throws OperatorError if the bytes are damaged, or expand without end */
async function* decompress(name: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let expanded = 0
  const gunzip = createGunzip()
  try {
    for await (const chunk of pipeline(Readable.from(chunks), gunzip, () => {})) {
      expanded += chunk.length
      if (expanded > EXPANDED_BYTES && expanded > MAXIMUM_EXPANSION * gunzip.bytesWritten)
        throw new OperatorError(
          `${escaped(name)} expands to more than ${MAXIMUM_EXPANSION} times its size: rows do not.`,
        )
      yield chunk
    }
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    throw code.startsWith('Z_')
      ? new OperatorError(`${escaped(name)} is damaged: ${message}.`)
      : error
  }
}

/** Problem of a file or a line, with advice. */
export const NOT_UTF8 =
  'not UTF-8: give the output of `iconv -f WINDOWS-1252 -t UTF-8`, or of another encoding'

/** Limit of a line: a file without line breaks must not fill the memory. */
export const MAXIMUM_LINE_BYTES = 1024 * 1024

const LINE_BREAK = Buffer.from('\n')
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Cuts the chunks of a source into blocks of whole lines, without a byte order mark. Every line ends with a line break,
 * the last one too. Buffers at most one line; of a line that is too long, little over the limit.
 */
async function* wholeLines(
  chunks: AsyncIterable<Buffer>,
  maximum = MAXIMUM_LINE_BYTES,
): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  let restBytes = 0
  let isFirst = true
  const keep = (bytes: Buffer) => {
    if (bytes.length === 0 || restBytes > maximum) return
    rest.push(bytes.subarray(0, maximum + 1 - restBytes))
    restBytes += rest.at(-1)?.length ?? 0
  }
  const block = (bytes: Buffer) => {
    const isMarked = isFirst && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)
    isFirst = false
    return isMarked ? bytes.subarray(3) : bytes
  }
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_BREAK) + 1
    const restEnd = end > 0 && restBytes > 0 ? chunk.indexOf(LINE_BREAK) + 1 : 0
    if (restEnd > 0) yield block(Buffer.concat([...rest, chunk.subarray(0, restEnd)]))
    if (end > restEnd) yield block(chunk.subarray(restEnd, end))
    if (end > 0) [rest, restBytes] = [[], 0]
    keep(chunk.subarray(end))
  }
  if (restBytes > 0) yield block(Buffer.concat([...rest, LINE_BREAK]))
}

/** A line that is not empty, with its line break. */
export interface Line {
  /** File, if there are several, and number of the line from 1. */
  place: { file?: string; line: number }
  bytes: Buffer
  problem: string | undefined
}

interface ReadOptions {
  signal: AbortSignal | undefined
  /** Limit of a line, in bytes. */
  maximum?: number
  /** Returns newline-delimited JSON. */
  textOf?: (source: Source) => AsyncIterable<Buffer>
}

/** Reads the lines of sources, block by block. Ends at an abort, also if a source sends nothing. */
export async function* readBlocks(
  sources: Source[],
  {
    signal,
    maximum = MAXIMUM_LINE_BYTES,
    textOf = (source) => plainText(source, 'ndjson'),
  }: ReadOptions,
): AsyncGenerator<Generator<Line>> {
  let interrupt = () => {}
  signal?.addEventListener('abort', () => interrupt())
  for (const source of sources) {
    const blocks = wholeLines(textOf(source), maximum)
    const place = { ...(sources.length > 1 && { file: source.name }), line: 0 }
    for (;;) {
      const next = await new Promise<IteratorResult<Buffer> | undefined>((resolve, reject) => {
        interrupt = () => resolve(undefined)
        blocks.next().then(resolve, reject)
      })
      if (next === undefined || signal?.aborted) return
      if (next.done) break
      yield linesOf(next.value, maximum, place)
    }
  }
}

/** Counts each line in `place`. */
function* linesOf(block: Buffer, maximum: number, place: Line['place']): Generator<Line> {
  // Checking a block at once is many times faster than checking each line.
  const isValid = block.length <= maximum && isUtf8(block)
  for (let start = 0; start < block.length; ) {
    const end = block.indexOf(LINE_BREAK, start) + 1
    const bytes = block.subarray(start, end)
    place.line += 1
    const problem = isValid ? undefined : lineProblem(bytes, maximum)
    if (bytes.length > 1) yield { place: { ...place }, bytes, problem }
    start = end
  }
}

function lineProblem(line: Buffer, maximum: number): string | undefined {
  if (line.length > maximum + 1) return `the line is longer than ${maximum} bytes`
  return isUtf8(line) ? undefined : `the line is ${NOT_UTF8}`
}

const CHUNK_BYTES = 256 * 1024

export async function* readChunks(path: string): AsyncGenerator<Buffer> {
  yield* createReadStream(path, { highWaterMark: CHUNK_BYTES })
}

/** A source and its size; undefined for a pipe. */
export interface Input extends Source {
  bytes: number | undefined
}

export const READ_ONCE = 'Standard input (-) can be read only once.'

/**
 * Checks that all files can be read, before reading any.
 * @param paths `-` is standard input
 * @throws OperatorError for the first file that cannot be read
 */
export async function openInputs(paths: string[]): Promise<Input[]> {
  if (paths.filter((path) => path === '-').length > 1) {
    throw new UsageError(READ_ONCE)
  }
  return await Promise.all(paths.map(openInput))
}

async function openInput(path: string): Promise<Input> {
  if (path === '-') return { name: 'standard input', chunks: process.stdin, bytes: undefined }
  const info = await stat(path).catch(unreadable)
  if (info.isDirectory())
    throw new OperatorError(`${escaped(path)} is a folder: name the files in it.`)
  await access(path, constants.R_OK).catch(unreadable)
  return { name: path, chunks: readChunks(path), bytes: info.isFile() ? info.size : undefined }
}

function unreadable({ errno = 0, path }: NodeJS.ErrnoException): never {
  throw new OperatorError(`${escaped(`${path}`)}: ${getSystemErrorMessage(errno)}.`)
}
