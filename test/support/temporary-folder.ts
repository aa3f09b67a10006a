import { rmSync } from 'node:fs'
import { chmod, mkdtemp, readFile, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const RAM_DISK = '/dev/shm'
/** Room for the databases and for WAL, of which a server keeps up to 1 GB: Citus has three servers. */
const NEEDED_BYTES = 6 * 2 ** 30

/** Creates a folder for the temporary files of a test run. It is removed when this process ends. */
export async function createTemporaryFolder(): Promise<string> {
  // A short name, because the path of a socket of PostgreSQL has at most 107 bytes.
  const path = await mkdtemp(join(await placeOfFolder(), 't-'))
  // PostgreSQL may run as another user.
  await chmod(path, 0o711)
  process.once('exit', () => remove(path))
  return path
}

/** Removes the folder. Tries again, because a program that a test has left may still write. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, maxRetries: 10 })
  } catch (error) {
    process.stderr.write(`${path} could not be removed: ${(error as Error).message}\n`)
  }
}

/**
 * Returns the RAM disk of Linux if it has room and TMPDIR is not set: a new database takes a fifth of the processor time
 * there, and `npm run test:system` a ninth less. Otherwise returns the temporary folder of the system.
 */
async function placeOfFolder(): Promise<string> {
  // On macOS, TMPDIR is too long for the path of a socket.
  if (process.platform === 'darwin') return '/tmp'
  if (process.env.TMPDIR) return tmpdir()
  const disk = await statfs(RAM_DISK).catch(() => undefined)
  if (disk === undefined || (await forbidsPrograms(RAM_DISK))) return tmpdir()
  const room = Math.min(disk.bavail * disk.bsize, process.availableMemory())
  if (room > NEEDED_BYTES) return RAM_DISK
  const gigabytes = (bytes: number) => (bytes / 2 ** 30).toFixed(1)
  process.stdout.write(
    `${RAM_DISK} has ${gigabytes(room)} GB free, and the tests need ${gigabytes(NEEDED_BYTES)} GB: they use ` +
      `${tmpdir()}, and take more processor time.\n`,
  )
  return tmpdir()
}

/** True if no program can start from this place, as in containers of Docker. Tests write programs. */
async function forbidsPrograms(place: string): Promise<boolean> {
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '')
  // Of several mounts of one place, the last one is in use.
  const line = mounts.split('\n').findLast((each) => each.split(' ')[1] === place)
  return line !== undefined && /\bnoexec\b/.test(line)
}
