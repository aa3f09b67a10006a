import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import type { BenchDatabase } from '../data/database.ts'
import { processors } from './measured-on.ts'
import { table } from './tables.ts'

/** Machine and versions of a measurement. */
export async function describeMachine({ owner, server }: BenchDatabase): Promise<string> {
  const { rows } = await owner.query<{ version: string; cflags: string }>(
    `select version(), (select setting from pg_config where name = 'CFLAGS') as cflags`,
  )
  const { version = '', cflags = '' } = rows[0] ?? {}
  const own = await dependencies('../..', ['fastify', 'pg', 'kysely'])
  const compared = await dependencies('..', [
    'postgres',
    'express',
    '@nestjs/core',
    'typeorm',
    '@platformatic/db-core',
  ])
  return table(
    ['Machine', `${processors()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`],
    [
      ['PostgreSQL', version],
      ['PostgreSQL, CFLAGS', `\`${cflags}\``],
      ['PostgreSQL, from', server.origin],
      ['Node.js', process.versions.node],
      ['Service', own.join(', ')],
      ['Compared servers', compared.join(', ')],
    ],
  )
}

async function dependencies(folder: string, names: string[]): Promise<string[]> {
  const text = await readFile(join(import.meta.dirname, folder, 'package.json'), 'utf8')
  const manifest = JSON.parse(text) as { dependencies: Record<string, string> }
  return names.map((name) => `${name} ${manifest.dependencies[name]}`)
}
