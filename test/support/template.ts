import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/index.ts'
import { createCitusTemplate, onEachNode } from './citus.ts'

/** An empty database with the newest schema, which every test clones. */
export interface Template {
  name: string
  drop(): Promise<void>
}

/** True if all tests run on a cluster of Citus. */
export const isCitus = process.env.TEST_POSTGRES === 'citus'

const partitions = new URL('../../docs/reference/partitions.sql', import.meta.url)

/**
 * Creates the template, once a test run; with partitioned tables if TEST_PARTITIONED=true, and on each
 * node of Citus.
 */
export async function createTemplate(server: string): Promise<Template> {
  const name = `template_${randomBytes(6).toString('hex')}`
  if (isCitus) {
    await createCitusTemplate(server, name)
    return { name, drop: () => onEachNode(server, `drop database ${name} with (force)`) }
  }
  await onServer(server, `create database ${name}`)
  const pool = new pg.Pool({ connectionString: databaseUrl(server, name), max: 1 })
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  await migrateToLatest(db)
  if (process.env.TEST_PARTITIONED === 'true') await pool.query(await readFile(partitions, 'utf8'))
  await db.destroy()
  const drop = async () => {
    // The last two have the sample data, if a test file needs it.
    for (const database of [name, `${name}_seeded`, `${name}_seeding`])
      await onServer(server, `drop database if exists ${database} with (force)`)
  }
  return { name, drop }
}

/** Connection string of another database on the same server. */
export function databaseUrl(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

/** Runs one statement as a superuser. */
export async function onServer(connectionString: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
