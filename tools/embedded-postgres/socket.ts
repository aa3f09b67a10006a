import { rmSync } from 'node:fs'
import { mkdtemp, realpath, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OperatorError } from '../../src/operator-error.ts'

/** PostgreSQL's default port. On a Unix socket, it is a part of the file's name. */
export const DEFAULT_PORT = '5432'

/** Longest path of a Unix socket in bytes: 107 on Linux, 103 on macOS. */
const LONGEST_PATH = process.platform === 'linux' ? 107 : 103

/** Links that this process has made, by folder. */
const links = new Map<string, Promise<string>>()

/**
 * Returns the URL of the superuser on the Unix socket of a cluster.
 * @param folder folder of the cluster, which has the socket
 * @throws system error if the folder does not exist
 * @throws OperatorError if even a link in the folder for temporary files is too long
 */
export async function socketUrl(folder: string, port = DEFAULT_PORT): Promise<string> {
  const url = new URL(`postgresql://postgres@localhost:${port}/postgres`)
  url.searchParams.set('host', await reachable(await realpath(folder), port))
  return url.href
}

/** Returns the folder, or a link to it if the path of its socket is too long for the operating system. */
async function reachable(folder: string, port: string): Promise<string> {
  if (isShort(folder, port)) return folder
  let link = links.get(folder)
  if (link === undefined) {
    link = createLink(folder)
    links.set(folder, link)
  }
  const path = await link
  if (isShort(path, port)) return path
  throw new OperatorError(
    `The path of the embedded database is too long for a Unix socket (${folder}): set DATA_DIR to a shorter one.`,
  )
}

function isShort(folder: string, port: string): boolean {
  return Buffer.byteLength(join(folder, `.s.PGSQL.${port}`)) <= LONGEST_PATH
}

/** Creates a link in a new folder that only this user can enter. It is removed when this process ends. */
async function createLink(folder: string): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'investment-data-'))
  process.once('exit', () => rmSync(parent, { recursive: true, force: true }))
  const link = join(parent, 'postgres')
  await symlink(folder, link)
  return link
}
