import { access, constants, stat } from 'node:fs/promises'
import { Failure, UsageMistake } from './failure.ts'
import { readChunks } from './import/file-source.ts'
import type { Source } from './import/source.ts'

/** A source whose size is known, unless it is a pipe. */
export interface Input extends Source {
  bytes: number | undefined
}

/**
 * Makes sure that all files can be read, before any of them is.
 * @param paths `-` is standard input
 * @throws Failure that names the first which cannot be read
 */
export async function openInputs(paths: string[]): Promise<Input[]> {
  if (paths.filter((path) => path === '-').length > 1) {
    throw new UsageMistake('Standard input (-) can be read only once.')
  }
  return await Promise.all(paths.map(openInput))
}

async function openInput(path: string): Promise<Input> {
  if (path === '-') return { name: 'standard input', chunks: process.stdin, bytes: undefined }
  try {
    await access(path, constants.R_OK)
    const stats = await stat(path)
    if (stats.isDirectory()) throw new Failure(`${path} is a folder: name the files in it.`)
    return { name: path, chunks: readChunks(path), bytes: stats.isFile() ? stats.size : undefined }
  } catch (error) {
    const sentence = FAULTS[(error as NodeJS.ErrnoException).code ?? '']
    throw sentence === undefined ? error : new Failure(`${path}: ${sentence}.`)
  }
}

const FAULTS: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EACCES: 'you may not read this file',
  ELOOP: 'its symbolic links go round in circles',
  ENAMETOOLONG: 'the name is too long for a file',
}
