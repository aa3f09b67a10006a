import { cp, readdir, symlink } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { installPackages } from '../../../tools/install.ts'
import { run } from '../programs.ts'

const TOOLS = resolve('test/clients')
const SOURCES = ['package.json', 'README.md', 'CHANGELOG.md', 'tsconfig.json', 'src']

/** Returns the path of a program of `test/clients`. */
export function clientTool(name: string): string {
  installPackages(TOOLS)
  return join(TOOLS, 'node_modules/.bin', name)
}

/**
 * Builds the TypeScript client in a folder, by its own scripts.
 * @returns the path of its file for `npm install`
 */
export async function packTypescriptClient(folder: string): Promise<string> {
  installPackages(TOOLS)
  for (const name of SOURCES)
    await cp(join('clients/typescript', name), join(folder, name), { recursive: true })
  await symlink(join(TOOLS, 'node_modules'), join(folder, 'node_modules'))
  await run('npm', ['pack'], { cwd: folder })
  const files = await readdir(folder)
  const file = files.find((name) => name.endsWith('.tgz'))
  if (file === undefined) throw new Error(`npm pack has made no file: ${files}`)
  return join(folder, file)
}
