import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Binaries } from './binaries.ts'

/**
 * System account for the programs of PostgreSQL. `prefix` goes before a command line; `owner` is set if
 * PostgreSQL's files must belong to another user.
 */
export type Account = { prefix: string[]; owner?: { uid: number; gid: number } }

// This program parses PostgreSQL's messages, so they must be in English.
const englishMessages = ['env', 'LC_ALL=C']

/**
 * Selects the account, because PostgreSQL does not run as root. Root uses a user namespace: PostgreSQL
 * sees an ordinary user, while its files belong to root. Root's home may stay closed. Without
 * namespaces, as in most containers, PostgreSQL runs as the user postgres or nobody.
 * @param owner user id of existing data
 * @throws Error with one sentence if PostgreSQL cannot run on this machine
 */
export async function chooseAccount(owner: number | undefined): Promise<Account> {
  if (process.getuid?.() !== 0) return { prefix: englishMessages }
  const user = await ordinaryUser()
  if (owner) return { prefix: englishMessages, owner: { ...user, uid: owner } }
  // initdb and postgres look up their user by id, so the id must exist.
  const namespace = ['--user', `--map-user=${user.uid}`, `--map-group=${user.gid}`]
  if (spawnSync('unshare', [...namespace, 'true']).status === 0)
    return { prefix: [...englishMessages, 'unshare', ...namespace] }
  if (owner === 0)
    throw new Error(
      'Root made these data in a user namespace, and this machine forbids user namespaces: ' +
        'allow them, or choose another DATA_DIR.',
    )
  return { prefix: englishMessages, owner: user }
}

async function ordinaryUser() {
  const lines = (await fs.readFile('/etc/passwd', 'utf8')).split('\n')
  const users = lines.map((line) => line.split(':'))
  for (const wanted of ['postgres', 'nobody']) {
    const [, , uid, gid] = users.find(([name]) => name === wanted) ?? []
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error('PostgreSQL does not run as root: start as another user, or set DATABASE_URL.')
}

/** Place of the programs and data that the account cannot reach in the project's folder. */
const ACCESSIBLE_FOLDER = '/var/lib/investment-data-query-service'

/**
 * Returns paths that the account can access: the given ones, or new ones in ACCESSIBLE_FOLDER. The
 * programs are copied there. The project may be in a home that other users cannot enter.
 */
export async function accessiblePaths(
  { owner }: Account,
  binaries: Binaries,
  folder: string,
): Promise<{ binaries: Binaries; folder: string }> {
  if (!owner) return { binaries, folder }
  const canAccess = (path: string) => spawnSync('test', ['-x', path], owner).status === 0
  return {
    binaries: canAccess(binaries.postgres) ? binaries : await copyBinaries(binaries),
    folder: canAccess(dirname(folder)) ? folder : await inAccessibleFolder(`data-${randomUUID()}`),
  }
}

async function inAccessibleFolder(name: string): Promise<string> {
  await fs.mkdir(ACCESSIBLE_FOLDER, { recursive: true, mode: 0o755 })
  return join(ACCESSIBLE_FOLDER, name)
}

async function copyBinaries({ root, initdb, postgres }: Binaries): Promise<Binaries> {
  const manifest = await fs.readFile(join(root, '../package.json'), 'utf8')
  const { version }: { version: string } = JSON.parse(manifest)
  const copy = await inAccessibleFolder(`postgres-${version}`)
  if (!existsSync(copy)) {
    const unfinished = `${copy}-${randomUUID()}`
    await fs.cp(root, unfinished, { recursive: true, verbatimSymlinks: true })
    // Another process may have finished its copy first.
    await fs.rename(unfinished, copy).catch(() => fs.rm(unfinished, { recursive: true }))
  }
  const inCopy = (path: string) => join(copy, relative(root, path))
  return { root: copy, initdb: inCopy(initdb), postgres: inCopy(postgres) }
}
