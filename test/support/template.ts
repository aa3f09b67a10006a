import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/index.ts'
import { prepareRights } from '../../src/operator/rights.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { createCitusTemplate, dropOnEachNode, onEachNode } from './citus.ts'

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
    return { name, drop: () => dropDatabase(server, name) }
  }
  await onServer(server, `create database ${name}`)
  const pool = new pg.Pool({ connectionString: databaseUrl(server, name), max: 1 })
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  await migrateToLatest(db)
  await prepareRights(db, () => {})
  if (process.env.TEST_PARTITIONED === 'true') await pool.query(await readFile(partitions, 'utf8'))
  await db.destroy()
  const drop = async () => {
    // The last two have the sample data, if a test file needs it.
    for (const database of [name, `${name}_seeded`, `${name}_seeding`])
      await dropDatabase(server, database)
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

const administrators = new Map<string, pg.Pool>()

/** Runs a statement on a connection that all calls share: a new one takes 10 ms of processor time. */
async function administer(server: string, statement: string): Promise<void> {
  const connectionString = databaseUrl(server, 'postgres')
  let administrator = administrators.get(connectionString)
  if (administrator === undefined) {
    // The process may end while the connection is idle.
    const options = { max: 1, idleTimeoutMillis: 0, allowExitOnIdle: true }
    administrator = new pg.Pool({ connectionString, ...options })
    administrator.on('error', () => {})
    administrators.set(connectionString, administrator)
  }
  await administrator.query(statement)
}

/** Clones a database with the settings that its roles have in it. */
export async function cloneDatabase(server: string, template: string, name: string): Promise<void> {
  // file_copy: 10 ms to create and 5 ms to drop; wal_log: 13 ms and 12 ms.
  const create = `create database ${name} template ${template} strategy file_copy`
  const statements = [create, copyRoleSettings(template, name)]
  for (const statement of statements)
    await (isCitus ? onEachNode(server, statement) : administer(server, statement))
}

/** PostgreSQL clones no settings of roles. Citus would send them to the other nodes, which have the same ones. */
const copyRoleSettings = (from: string, to: string) => `
  do $$
  declare statement text;
  begin
    perform set_config('citus.enable_ddl_propagation', 'off', true);
    for statement in
      select format('alter role %s in database ${to} set %s to %L', setrole::regrole,
        split_part(setting, '=', 1), substr(setting, strpos(setting, '=') + 1))
      from pg_db_role_setting, unnest(setconfig) setting
      where setdatabase = (select oid from pg_database where datname = '${from}') and setrole <> 0
    loop
      execute statement;
    end loop;
  end $$`

/**
 * Drops a database with its sessions, if it exists.
 * @param server connection string of a superuser, for any database of the server
 */
export async function dropDatabase(server: string, name: string): Promise<void> {
  if (isCitus) await dropOnEachNode(server, name)
  else await administer(server, `drop database if exists ${name} with (force)`)
}
