import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The peers are no dependency of the service: they are installed when they are first measured. */
export function installPeers(): void {
  const cwd = import.meta.dirname
  if (existsSync(join(cwd, 'node_modules/.package-lock.json'))) return
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd, stdio: 'inherit' })
}
