import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { installPackages } from '../../tools/install.ts'

const bench = dirname(import.meta.dirname)

/** Installs the packages of the compared servers, which the service does not depend on. */
export const installComparedServers = () => installPackages('bench')

/** Compiles the NestJS server: Node does not run its decorators. */
export async function compileNest(): Promise<void> {
  const compiler = join(dirname(bench), 'node_modules/.bin/tsc')
  await promisify(execFile)(compiler, ['-p', join(bench, 'compared-servers/nestjs')])
}
