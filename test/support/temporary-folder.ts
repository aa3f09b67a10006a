import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const RAM_DISK = '/dev/shm'
/** Room for WAL of the server of all tests (1 GB at most), for 1 GB of the other servers, and a reserve. */
const NEEDED_BYTES = 4 * 2 ** 30

/** Folder for the temporary files of a test run. */
export interface TemporaryFolder {
  path: string
  remove(): Promise<void>
}

/** Creates the folder on the RAM disk of Linux, if TMPDIR is not set and there is room. Otherwise in the one of the system. */
export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(await placeOfFolder(), 'tests-'))
  // PostgreSQL may run as another user.
  await chmod(path, 0o711)
  // A program that a test has ended may still write.
  return { path, remove: () => rm(path, { recursive: true, maxRetries: 10 }) }
}

/** On a RAM disk, a new database takes a fifth of the processor time, and all tests a seventh less. */
async function placeOfFolder(): Promise<string> {
  const disk = process.env.TMPDIR ? undefined : await statfs(RAM_DISK).catch(() => undefined)
  if (disk === undefined) return tmpdir()
  const room = Math.min(disk.bavail * disk.bsize, process.availableMemory())
  if (room > NEEDED_BYTES) return RAM_DISK
  const gigabytes = (bytes: number) => (bytes / 2 ** 30).toFixed(1)
  process.stdout.write(
    `${RAM_DISK} has ${gigabytes(room)} GB free, and the tests need ${gigabytes(NEEDED_BYTES)} GB: they use ` +
      `${tmpdir()}, where a new database takes five times the processor time.\n`,
  )
  return tmpdir()
}
