import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { OperatorError } from '../../src/operator-error.ts'
import { type Account, accessiblePaths, chooseAccount } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'

const run = promisify(execFile)

/** A PostgreSQL cluster on disk: its folder (`data`, `log`, the socket), programs and account. */
export type Cluster = { folder: string; binaries: Binaries; account: Account }

/** Path of the cluster in a data folder. */
export const clusterFolder = (dataDir: string) => join(dataDir, 'postgres')

/**
 * Opens the cluster of a data folder, and creates it first if there is none (about half a second).
 * @throws OperatorError if the data folder cannot be created
 */
export async function openCluster(dataDir: string): Promise<Cluster> {
  await makeDataFolder(dataDir, { mode: 0o711, dataDir })
  const installed = await findBinaries()
  if (!existsSync(clusterFolder(dataDir))) await createCluster(dataDir, installed)
  const folder = await fs.realpath(clusterFolder(dataDir))
  const account = await chooseAccount((await fs.stat(folder)).uid)
  const { binaries } = await accessiblePaths(account, installed, folder)
  await writeAuthentication(folder, account)
  return { folder, binaries, account }
}

/**
 * Nobody but the owner of the folder, and root, can reach the socket in it, so PostgreSQL asks for no password. Over
 * TCP, which only the tests and the bench open, it does.
 */
const AUTHENTICATION = `local all all trust
host all all 127.0.0.1/32 scram-sha-256
`

/** Writes pg_hba.conf before each start. That of release 1.0.0 asks for a password on the socket, too. */
async function writeAuthentication(folder: string, { owner }: Account) {
  const file = join(folder, 'data/pg_hba.conf')
  await fs.writeFile(file, AUTHENTICATION, { mode: 0o600 })
  if (owner) await fs.chown(file, owner.uid, owner.gid)
}

/**
 * Creates the cluster under a temporary name and renames it at the end. An interrupted start leaves no
 * partial cluster. If two processes create one, the first to finish wins and both use it.
 */
async function createCluster(dataDir: string, installed: Binaries) {
  await removeLeftovers(dataDir)
  const account = await chooseAccount(undefined)
  const wanted = join(dataDir, `making-${process.pid}-${randomUUID()}`)
  const { binaries, folder } = await accessiblePaths(account, installed, wanted)
  await makeDataFolder(folder, { mode: 0o700, dataDir })
  const log = join(folder, 'log')
  await fs.writeFile(log, '', { mode: 0o600 })
  if (account.owner) {
    for (const path of [log, folder]) await fs.chown(path, account.owner.uid, account.owner.gid)
  }
  await initialise(account, binaries, folder)
  const place = clusterFolder(dataDir)
  const put = folder === wanted ? fs.rename(folder, place) : fs.symlink(folder, place)
  await put.catch(async (error) => {
    await fs.rm(folder, { recursive: true })
    if (!existsSync(place)) throw error
  })
}

async function initialise({ prefix, owner }: Account, { initdb }: Binaries, folder: string) {
  // Order by code point, the same on every machine. --no-sync halves the time.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin']
  const flags = [...locale, '--builtin-locale=C.UTF-8', '--no-sync', '--no-instructions']
  // writeAuthentication() replaces this choice. Without one, initdb prints a warning.
  const access = ['--username=postgres', '--auth=trust']
  const [command = initdb, ...rest] = [...prefix, initdb, `--pgdata=${folder}/data`]
  await run(command, [...rest, ...flags, ...access], { cwd: folder, ...owner })
}

async function removeLeftovers(dataDir: string) {
  for (const name of await fs.readdir(dataDir)) {
    const [, pid] = /^making-(\d+)-/.exec(name) ?? []
    if (pid && !isAlive(Number(pid))) await fs.rm(join(dataDir, name), { recursive: true })
  }
}

function isAlive(pid: number) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/**
 * Creates a folder and its parents. Node's recursive mkdir never returns below a folder that responds
 * ENOENT to mkdir, such as /proc.
 * @param setting `dataDir` is the value of DATA_DIR, for the error message
 * @throws OperatorError if there is no such folder and it cannot be created
 */
async function makeDataFolder(
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
    await makeFolder(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' || (await isFolder(dirname(path)))) throw error
    await makePath(dirname(path), mode)
    await makeFolder(path, mode)
  }
}

async function makeFolder(path: string, mode: number): Promise<void> {
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
