import { appendFile, cp, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Folder of the release under test. */
export const thisRelease = join(import.meta.dirname, '../../..')

/** Copies the release to a folder that the test deletes at its end. */
export async function copyRelease(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'release-'))
  t.teardown(() => rm(folder, { recursive: true }))
  for (const part of ['package.json', 'operator', 'docs/reference', 'migrations', 'seeds', 'src'])
    await cp(join(thisRelease, part), join(folder, part), { recursive: true })
  await symlink(join(thisRelease, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Adds a migration to a release. */
export async function addMigration(release: string, name: string, statements: string[] = []) {
  const lines = statements.map((statement) => `  await sql\`${statement}\`.execute(db)\n`)
  const source = `import { sql } from 'kysely'\nexport const up = async (db) => {\n${lines.join('')}}\n`
  const folder = join(release, 'migrations')
  await writeFile(join(folder, `${name}.ts`), source)
  const line = `migrations['${name}'] = (await import('./${name}.ts')).up\n`
  await appendFile(join(folder, 'index.ts'), line)
}
