import { sql } from 'kysely'
import { build, compile } from './builder.ts'
import type { Database } from './database.ts'

const facts = compile(
  'server facts',
  sql`${build.selectNoFrom([
    sql`current_setting('server_version')`.as('version'),
    build
      .selectFrom('kysely_migration')
      .select((eb) => eb.fn.max('name').as('name'))
      .as('newest_migration'),
  ])}`,
)

/** What the primary says of itself. */
export interface ServerFacts {
  /** PostgreSQL's version, e.g. `18.1`. */
  version: string
  /** The name of the last migration that ran, e.g. `0004-service-role`. */
  newestMigration: string
}

/** @throws DatabaseUnavailable */
export async function serverFacts(db: Pick<Database, 'probe'>): Promise<ServerFacts> {
  const [version, newestMigration] = (await db.probe(facts, [])).shift() ?? []
  return { version: String(version), newestMigration: String(newestMigration) }
}
