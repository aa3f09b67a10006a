import { createHash } from 'node:crypto'
import { existsSync, globSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { INSTALL } from '../../../src/http/openapi/code-samples.js'
import { installPackages } from '../../../tools/install.ts'
import { run } from '../programs.ts'

const TOOLS = resolve('test/clients')
const SOURCE = resolve('clients/typescript')
const FILES = ['package.json', 'README.md', 'CHANGELOG.md', 'tsconfig.json', 'src']
const CACHE = resolve('node_modules/.cache/typescript-client')

/** Returns the path of a program of `test/clients`. */
export function clientTool(name: string): string {
  installPackages(TOOLS)
  return join(TOOLS, 'node_modules/.bin', name)
}

/** Builds the package by its own scripts. The test files share it until a file of the client changes. */
async function packedClient(): Promise<string> {
  installPackages(TOOLS)
  const hash = createHash('sha256')
  for (const path of globSync('{*.json,*.md,src/*}', { cwd: SOURCE }).sort())
    hash.update(path).update(await readFile(join(SOURCE, path)))
  const folder = join(CACHE, hash.digest('hex'))
  if (!existsSync(folder)) {
    await rm(CACHE, { recursive: true, force: true })
    const making = await mkdtemp(join(tmpdir(), 'typescript-client-'))
    for (const name of FILES) await cp(join(SOURCE, name), join(making, name), { recursive: true })
    await symlink(join(TOOLS, 'node_modules'), join(making, 'node_modules'))
    // It runs two compilers, which take minutes on a busy computer.
    await run('npm', ['pack'], { cwd: making, timeout: 600_000 })
    const [file = ''] = globSync('*.tgz', { cwd: making })
    await mkdir(CACHE, { recursive: true })
    // Beside the folder, because the temporary folder may be on another file system.
    const packed = await mkdtemp(`${CACHE}-`)
    await copyFile(join(making, file), join(packed, file))
    await rm(making, { recursive: true })
    // Another process may have made the package meanwhile.
    await rename(packed, folder).catch(async (error) => {
      if (!existsSync(folder)) throw error
      await rm(packed, { recursive: true })
    })
  }
  const [file = ''] = globSync('*.tgz', { cwd: folder })
  return join(folder, file)
}

/**
 * Makes the project of a reader: `npm init -y`, then the documented command that installs the file of the client.
 * @returns the path of the file
 */
export async function installTypescriptClient(folder: string): Promise<string> {
  const packed = await packedClient()
  const { version } = JSON.parse(await readFile(join(SOURCE, 'package.json'), 'utf8'))
  await copyFile(packed, join(folder, basename(packed)))
  await run('npm', ['init', '-y'], { cwd: folder })
  const [npm = '', ...args] = INSTALL.npm.replace('VERSION', version).split(' ')
  await run(npm, [...args, '--offline', '--no-audit'], { cwd: folder })
  return packed
}

/** Adds the types of Node.js to a project, which its developer installs. */
export async function addNodeTypes(folder: string): Promise<void> {
  await mkdir(join(folder, 'node_modules/@types'), { recursive: true })
  for (const name of ['@types/node', 'undici-types'])
    await symlink(resolve('node_modules', name), join(folder, 'node_modules', name))
}

/** Adds better-sqlite3 and its types to a project, which its developer installs. */
export async function addBetterSqlite(folder: string): Promise<void> {
  for (const name of ['better-sqlite3', '@types/better-sqlite3'])
    await symlink(join(TOOLS, 'node_modules', name), join(folder, 'node_modules', name))
}
