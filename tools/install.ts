/**
 * Installs the packages of a folder with its own package-lock.json, unless they are installed. Then runs one of
 * their programs: `node tools/install.ts tools/checks biome lint`.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export function installPackages(folder: string): void {
  const lock = readFileSync(join(folder, 'package-lock.json'))
  // Copy of the lock file, written after the installation.
  const installed = join(folder, 'node_modules/.installed.json')
  if (existsSync(installed) && readFileSync(installed).equals(lock)) return
  process.stderr.write(`Installs the packages of ${folder}, once for each package-lock.json.\n`)
  execFileSync('npm', ['ci', '--ignore-scripts', '--loglevel=error', '--no-update-notifier'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  writeFileSync(installed, lock)
}

if (import.meta.main) {
  const [folder = '', program, ...args] = process.argv.slice(2)
  installPackages(folder)
  if (program !== undefined) {
    const path = join(folder, 'node_modules/.bin', program)
    process.exitCode = spawnSync(path, args, { stdio: 'inherit' }).status ?? 1
  }
}
