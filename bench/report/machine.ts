import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { join } from 'node:path'
import { type BenchDatabase, SETTINGS } from '../data/database.ts'
import { processors } from './measured-on.ts'
import { table } from './tables.ts'

/** Machine and versions of a measurement. */
export async function describeMachine({ owner, server }: BenchDatabase): Promise<string> {
  const { rows } = await owner.query<{ server_version: string }>('show server_version')
  const own = await dependencies('../..', ['fastify', 'pg', 'kysely'])
  const compared = await dependencies('..', [
    'postgres',
    'express',
    '@nestjs/core',
    'typeorm',
    '@platformatic/db-core',
  ])
  const changed = Object.entries(SETTINGS).map(([name, value]) => `${name} = ${value}`)
  return table(
    ['Machine', `${processors()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB`],
    [
      [
        'PostgreSQL',
        `${rows[0]?.server_version}, ${server.embedded ? changed.join(', ') : 'BENCH_DATABASE_URL'}`,
      ],
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
