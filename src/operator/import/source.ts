import { Failure } from '../failure.ts'

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
 * @throws Failure when its first bytes say that it is something else than text
 */
export async function* textOnly({ name, chunks }: Source): AsyncGenerator<Buffer> {
  let isFirst = true
  for await (const chunk of chunks) {
    const form = isFirst ? OTHER_FORMS.find(([begin]) => startsWith(chunk, begin)) : undefined
    if (form) throw new Failure(`${name} is ${form[1]}.`)
    isFirst = false
    yield chunk
  }
}

const startsWith = (chunk: Buffer, begin: number[]) =>
  begin.every((byte, index) => chunk[index] === byte)
