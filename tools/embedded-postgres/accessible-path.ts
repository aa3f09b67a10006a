import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'

const elsewhere = '/var/lib/investment-data-query-service'

type Places = { binaries: Binaries; folder: string }

/**
 * Another user cannot enter a clone that lies in a closed home. Where PostgreSQL runs as another
 * user, the programs and a new data folder that it could not reach go to a place that it can.
 * @returns where both are; what the account can reach stays as given
 */
export async function makeEnterable(
  account: Account,
  binaries: Binaries,
  folder: string,
): Promise<Places> {
  if (!account.owner) return { binaries, folder }
  const user = account.owner
  const reaches = (path: string) => spawnSync('test', ['-x', path], user).status === 0
  return {
    binaries: reaches(binaries.postgres) ? binaries : await copyBinaries(binaries),
    folder: reaches(dirname(folder)) ? folder : join(await openPlace(), `data-${randomUUID()}`),
  }
}

async function openPlace() {
  await fs.mkdir(elsewhere, { recursive: true, mode: 0o755 })
  return elsewhere
}

async function copyBinaries({ root, initdb, postgres }: Binaries): Promise<Binaries> {
  const manifest = await fs.readFile(join(root, '../package.json'), 'utf8')
  const { version }: { version: string } = JSON.parse(manifest)
  const copy = join(await openPlace(), `postgres-${version}`)
  if (!existsSync(copy)) {
    const unfinished = `${copy}-${randomUUID()}`
    await fs.cp(root, unfinished, { recursive: true, verbatimSymlinks: true })
    await fs.rename(unfinished, copy).catch(() => fs.rm(unfinished, { recursive: true }))
  }
  const moved = (path: string) => join(copy, relative(root, path))
  return { root: copy, initdb: moved(initdb), postgres: moved(postgres) }
}
