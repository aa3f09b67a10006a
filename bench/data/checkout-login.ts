import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type BenchDatabase, changeUrl } from './database.ts'

/** Role that sees the names of another checkout's migrations. */
const ROLE = 'bench_checkout'

/**
 * Returns a login of the service for another checkout. Its migrations may have other names for the same schema: this
 * login alone sees them as applied, because this checkout refuses some of them.
 */
export async function loginOfCheckout(database: BenchDatabase, folder: string): Promise<string> {
  const { owner, serviceUrl } = database
  const { rows } = await owner.query<{ name: string }>('select name from kysely_migration')
  const applied = new Set(rows.map(({ name }) => name))
  const files = await readdir(join(folder, 'migrations'))
  const names = files.flatMap((file) => /^(\d{4}-.*)[.]ts$/.exec(file)?.[1] ?? [])
  const others = names.filter((name) => !applied.has(name))
  if (others.length === 0) return serviceUrl
  const found = await owner.query('select from pg_roles where rolname = $1', [ROLE])
  if (found.rowCount === 0)
    await owner.query(`create role ${ROLE} login password 'bench' in role investment_service`)
  const hidden = others.map((name) => `'${name}'`).join(', ')
  for (const name of others)
    await owner.query(`insert into kysely_migration (name, timestamp) values ($1, 'other')`, [name])
  await owner.query('alter table kysely_migration enable row level security')
  await owner.query(
    `create policy other_names on kysely_migration for select to ${ROLE} using (true)`,
  )
  await owner.query(
    `create policy own_names on kysely_migration for select to investment_service
      using (name not in (${hidden}))`,
  )
  return changeUrl(serviceUrl, { username: ROLE })
}
