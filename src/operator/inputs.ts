import { createReadStream } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { getSystemErrorMessage } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { OperatorError } from '../operator-error.ts'
import type { Source } from './loading/source.ts'
import { escaped } from './output.ts'

/** In bytes. 256 KiB are faster, but the memory of an import is a multiple of this size. */
const CHUNK_BYTES = 128 * 1024

/** The size is NaN for a pipe. */
export interface Input extends Source {
  size: number
  read: number
}

/** Share of inputs that was read so far; NaN if a size is unknown. */
export function shareOf(inputs: Input[]): number {
  const sum = (member: 'size' | 'read') => inputs.reduce((total, input) => total + input[member], 0)
  return sum('read') / sum('size')
}

/** @throws OperatorError if any file cannot be read */
export async function openInputs(paths: string[]): Promise<Input[]> {
  if (paths.filter((path) => path === '-').length > 1)
    throw new InvalidArgumentError('Standard input (-) can be read only once.')
  return await Promise.all(paths.map(openInput))
}

export async function openInput(path: string): Promise<Input> {
  if (path === '-')
    return { name: 'standard input', chunks: process.stdin, size: Number.NaN, read: 0 }
  try {
    const info = await stat(path)
    if (info.isDirectory())
      throw new OperatorError(`${escaped(path)} is a folder: name the files in it.`)
    await access(path, constants.R_OK)
    const size = info.isFile() ? info.size : Number.NaN
    const input: Input = { name: path, chunks: chunks(), size, read: 0 }
    async function* chunks() {
      try {
        for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
          input.read += chunk.length
          yield chunk
        }
      } catch (error) {
        throw unreadable(path, error)
      }
    }
    return input
  } catch (error) {
    throw unreadable(path, error)
  }
}

/** Names the file of an error of the system. */
function unreadable(path: string, error: unknown): unknown {
  const { errno } = error as NodeJS.ErrnoException
  if (errno === undefined) return error
  return new OperatorError(`${escaped(path)}: ${getSystemErrorMessage(errno)}.`)
}
