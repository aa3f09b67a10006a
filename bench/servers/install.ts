import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const bench = dirname(import.meta.dirname)

/** Installs the packages of the compared servers, which the service does not depend on. */
export function installComparedServers(): void {
  if (existsSync(join(bench, 'node_modules/.package-lock.json'))) return
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: bench, stdio: 'inherit' })
}

/** Compiles the NestJS server: Node does not run its decorators. */
export async function compileNest(): Promise<void> {
  const compiler = join(dirname(bench), 'node_modules/.bin/tsc')
  await promisify(execFile)(compiler, ['-p', join(bench, 'compared-servers/nestjs')])
}
