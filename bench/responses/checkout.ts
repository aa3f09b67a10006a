import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export interface Checkout {
  folder: string
  remove(): Promise<void>
}

/**
 * Returns a folder with another version of the service and its packages.
 * @param source a folder with `node_modules`, or else a commit of this repository: it is then checked out and installed
 */
export async function checkOut(source: string): Promise<Checkout> {
  if (existsSync(source)) return { folder: resolve(source), remove: async () => {} }
  const folder = await mkdtemp(join(tmpdir(), 'checkout-'))
  const git = (...args: string[]) => execFileSync('git', args, { stdio: 'inherit' })
  git('worktree', 'add', '--detach', folder, source)
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'inherit' })
  const remove = async () => {
    git('worktree', 'remove', '--force', folder)
    await rm(folder, { recursive: true, force: true })
  }
  return { folder, remove }
}
