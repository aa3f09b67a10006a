import { globSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Test } from 'tap'
import { installPackages } from '../../../tools/install.ts'
import { run } from '../programs.ts'

const SOURCE = resolve('clients/mcp')
const FILES = ['package.json', 'README.md', 'CHANGELOG.md', 'tsconfig.json', 'src']

/** The package of the MCP server, as `npm pack` makes it. */
export interface McpPackage {
  /** Path of its file. */
  file: string
  /** Folder with its content, outside of the checkout. */
  folder: string
  /** Path of the program. */
  program: string
}

/** Installs what the MCP server and its tests import. Call it before their imports. */
export function installMcp(): void {
  installPackages('test/clients')
  installPackages(SOURCE)
}

/** Builds the package by its own scripts, in a copy of the folder. */
export async function packMcp(t: Test): Promise<McpPackage> {
  const folder = await mkdtemp(join(tmpdir(), 'mcp-package-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const making = join(folder, 'clients/mcp')
  await mkdir(making, { recursive: true })
  for (const name of FILES) await cp(join(SOURCE, name), join(making, name), { recursive: true })
  for (const name of ['package.json', 'src']) {
    const client = join('clients/typescript', name)
    await cp(resolve(client), join(folder, client), { recursive: true })
  }
  await symlink(join(SOURCE, 'node_modules'), join(making, 'node_modules'))
  // The declarations of the SDK take a minute on a busy computer.
  await run('npm', ['pack'], { cwd: making, timeout: 300_000 })
  const [name = ''] = globSync('*.tgz', { cwd: making })
  const file = join(making, name)
  const unpacked = join(folder, 'unpacked')
  await mkdir(unpacked)
  await run('tar', ['-xzf', file, '-C', unpacked])
  const content = join(unpacked, 'package')
  return { file, folder: content, program: join(content, 'dist/investment-data-mcp.mjs') }
}
