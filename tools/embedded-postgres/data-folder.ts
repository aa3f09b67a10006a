import * as fs from 'node:fs/promises'
import { dirname } from 'node:path'
import { OperatorError } from '../../src/operator-error.ts'

/**
 * Makes a folder for data, with those that lead to it, unless it is there. Where a folder that is there
 * answers ENOENT to whoever makes another one in it, as /proc does, Node's own recursive mkdir asks it
 * again for ever; here no folder is asked twice.
 * @param facts `dataDir` is the setting that the folder comes from
 * @throws OperatorError when it is not there and cannot be made
 */
export async function makeDataFolder(
  path: string,
  { mode, dataDir }: { mode: number; dataDir: string },
): Promise<void> {
  await makePath(path, mode).catch(({ code }) => {
    throw new OperatorError(
      `${dataDir} cannot be a folder for data (${code}): set DATA_DIR to another one.`,
    )
  })
}

async function makePath(path: string, mode: number): Promise<void> {
  try {
    await makeOne(path, mode)
  } catch (error) {
    const leadsNowhere = errorCode(error) === 'ENOENT' && !(await isFolder(dirname(path)))
    if (!leadsNowhere) throw error
    await makePath(dirname(path), mode)
    await makeOne(path, mode)
  }
}

async function makeOne(path: string, mode: number): Promise<void> {
  await fs.mkdir(path, { mode }).catch(async (error) => {
    if (!(await isFolder(path))) throw error
  })
}

async function isFolder(path: string): Promise<boolean> {
  return await fs.stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

const errorCode = (error: unknown) => (error as NodeJS.ErrnoException).code
