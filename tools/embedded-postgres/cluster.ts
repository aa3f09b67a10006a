import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeEnterable } from './accessible-path.ts'
import { type Account, chooseAccount } from './account.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import { makeDataFolder } from './data-folder.ts'

const run = promisify(execFile)

/** A PostgreSQL cluster on disk: its folder (`data`, `password`, `log`) and what starts it. */
export type Cluster = { folder: string; binaries: Binaries; account: Account }

/** The folder of the cluster inside a data folder, whether it is there or not. */
export const clusterFolder = (dataDir: string) => join(dataDir, 'postgres')

/**
 * Opens the cluster of a data folder; makes it first where there is none (about half a second).
 * @throws OperatorError when no folder for data is there, and none can be made
 */
export async function openCluster(dataDir: string): Promise<Cluster> {
  await makeDataFolder(dataDir, { mode: 0o711, dataDir })
  const installed = await findBinaries()
  if (!existsSync(clusterFolder(dataDir))) await makeCluster(dataDir, installed)
  const folder = await fs.realpath(clusterFolder(dataDir))
  const account = await chooseAccount((await fs.stat(folder)).uid)
  const { binaries } = await makeEnterable(account, installed, folder)
  return { folder, binaries, account }
}

/**
 * The cluster is made beside its place and then put there in one step: a first start that was cut
 * short leaves no half-made one, and of two first starts at once one wins and both use it.
 */
async function makeCluster(dataDir: string, installed: Binaries) {
  await removeLeftovers(dataDir)
  const account = await chooseAccount(undefined)
  const wanted = join(dataDir, `making-${process.pid}-${randomUUID()}`)
  const { binaries, folder } = await makeEnterable(account, installed, wanted)
  await makeDataFolder(folder, { mode: 0o700, dataDir })
  const password = join(folder, 'password')
  await fs.writeFile(password, randomBytes(24).toString('base64url'), { mode: 0o600 })
  await fs.writeFile(join(folder, 'log'), '', { mode: 0o600 })
  if (account.owner) {
    for (const path of [password, join(folder, 'log'), folder])
      await fs.chown(path, account.owner.uid, account.owner.gid)
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
  // Order by code point, the same on every machine; not waiting for the disk halves the time.
  const locale = ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin']
  const flags = [...locale, '--builtin-locale=C.UTF-8', '--no-sync', '--no-instructions']
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${folder}/password`]
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
